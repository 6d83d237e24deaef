/* SPDX-License-Identifier: ISC */
/*
 * [audit] of execd.conf(5).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf.h"
#include "redact_limits.h"
#include "util.h"

static const char *const files_words[] = { [AUDIT_FILES_NONE] = "none",
	[AUDIT_FILES_WRITES] = "writes",
	[AUDIT_FILES_ALL] = "all" };

static int
parse_files(void *at, const char *text, char *why)
{
	for (size_t i = 0; i < nitems(files_words); i++)
		if (strcmp(files_words[i], text) == 0) {
			*(uint8_t *)at = (uint8_t)i;
			return 0;
		}
	return conf_refuse(why, "`%.100s` is not none, writes or all", text);
}

static void
show_files(struct buf *b, const void *at)
{
	uint8_t files = *(const uint8_t *)at;

	if (files != AUDIT_FILES_UNSET)
		buf_printf(b, "%s\n", files_words[files]);
}

const struct conf_type audit_files_type = { parse_files, show_files, NULL,
	false, false };

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct audit_rules, member)           \
	}

static const struct conf_key keys[] = {
	KEY("file", conf_path, sinks[AUDIT_FILE].path),
	KEY("syslog", conf_path, sinks[AUDIT_SYSLOG].path),
	KEY("journal", conf_path, sinks[AUDIT_JOURNAL].path),
	KEY("required", conf_bool, required),
	KEY("files", audit_files_type, files),
	KEY("redact-names", conf_words, redact_names),
	KEY("redact-values", conf_words, redact_values),
};

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->audit;
}

static void *
object(const struct conf *c, size_t i)
{
	return i == 0 && audit_is_kept(&c->audit) ? (void *)(uintptr_t)&c->audit
						  : NULL;
}

/* The patterns are sent to every runner, and compared with every word of a
 * command, so they are limited. */
static int
check_patterns(const struct strings *patterns, const char *keyword, char *why)
{
	if (patterns->count > REDACT_PATTERNS_MAX)
		return conf_refuse(why, "%s: more than %d patterns", keyword,
		    REDACT_PATTERNS_MAX);
	for (size_t i = 0; i < patterns->count; i++)
		if (strlen(patterns->items[i]) > REDACT_PATTERN_CHARS)
			return conf_refuse(why,
			    "%s: `%.100s` is longer than %d characters",
			    keyword, patterns->items[i], REDACT_PATTERN_CHARS);
	return 0;
}

static int
check(struct conf *c, void *o, char *why)
{
	struct audit_rules *a = o;
	const char *place;
	int err;

	if (!audit_is_kept(a))
		return conf_refuse(
		    why, "one of file, syslog and journal is needed");
	if (check_patterns(&a->redact_names, "redact-names", why) < 0 ||
	    check_patterns(&a->redact_values, "redact-values", why) < 0)
		return -EINVAL;
	err = audit_place(a, &place);
	if (err == 0)
		return 0;
	snprintf(why, CONF_WHY_MAX, "%.200s: %s", place, strerror(-err));
	return -EINVAL;
}

const struct conf_section conf_audit = { "audit", false, keys, nitems(keys),
	add, object, check };
