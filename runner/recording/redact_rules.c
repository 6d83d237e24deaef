/* SPDX-License-Identifier: ISC */
/* Rules for names, values and options that are secrets. */
#include "redact_rules.h"

#include <ctype.h>
#include <string.h>

#include "environment.h"
#include "util.h"

/* Parts of names; hyphens and underscores in a name are ignored. */
static const char *const secret_names[] = { "password", "passwd", "passphrase",
	"secret", "token", "apikey", "accesskey", "privatekey", "credential",
	"authorization", "cookie" };

/* Names with these ends tell where a secret is, or how much of it there is. */
static const char *const harmless_ends[] = { "file", "path", "dir", "tokens",
	"type", "ttl" };

/* Matched as whole words. */
static const char *const short_names[] = { "pass", "auth", "pwd" };

/* Options followed by NAME:PASSWORD. */
static const char *const pair_options[] = { "-u", "-U", "--user",
	"--proxy-user" };

/* Values that are recognized as secrets by their form. */
static const char *const secret_values[] = { "ghp_*", "gho_*", "ghu_*", "ghs_*",
	"github_pat_*", "glpat-*", "xox?-*", "AKIA????????????????",
	"sk-????????????????*", "eyJ*.eyJ*.*" };

static size_t
take_lines(struct slice list[REDACT_PATTERNS_MAX], const char *text)
{
	size_t n = 0;

	while (*text != '\0' && n < REDACT_PATTERNS_MAX) {
		size_t len = strcspn(text, "\n");

		if (len > 0)
			list[n++] = (struct slice){ text, len };
		text += len + (text[len] == '\n');
	}
	return n;
}

void
redact_rules_init(
    struct redact_rules *rules, const char *names, const char *values)
{
	rules->nnames = take_lines(rules->names, names);
	rules->nvalues = take_lines(rules->values, values);
}

/* --- what is a secret --------------------------------------------------- */

static struct slice
compared(struct slice s)
{
	if (s.len > REDACT_COMPARED_BYTES)
		s.len = REDACT_COMPARED_BYTES;
	return s;
}

static bool
is_among(struct slice s, const struct slice *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (environment_matches(patterns[i], s))
			return true;
	return false;
}

static bool
ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && strcmp(s + len - n, end) == 0;
}

/*
 * The word must be the whole name or follow a separator, as in DB_PASS. "pwd"
 * counts only after a separator.
 */
static bool
has_short_name(struct slice name)
{
	for (size_t i = 0; i < nitems(short_names); i++) {
		size_t n = strlen(short_names[i]);

		if (name.len >= n &&
		    strncasecmp(name.ptr + name.len - n, short_names[i], n) ==
			0 &&
		    (name.len == n ? i < 2
				   : strchr("_-.",
					 name.ptr[name.len - n - 1]) != NULL))
			return true;
	}
	return false;
}

static bool
is_built_in_name(struct slice name)
{
	char word[REDACT_COMPARED_BYTES + 1];
	size_t n = 0;

	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] != '-' && name.ptr[i] != '_')
			word[n++] = (char)tolower((unsigned char)name.ptr[i]);
	word[n] = '\0';
	for (size_t i = 0; i < nitems(harmless_ends); i++)
		if (ends_with(word, harmless_ends[i]))
			return false;
	for (size_t i = 0; i < nitems(secret_names); i++)
		if (strstr(word, secret_names[i]) != NULL)
			return true;
	return has_short_name(name);
}

/*
 * Tells whether token names a secret. Of a path only the last name counts, of
 * an option what follows its hyphens.
 */
bool
redact_is_name(const struct redact_rules *rules, struct slice token)
{
	const char *slash =
	    token.len > 0 ? memrchr(token.ptr, '/', token.len) : NULL;
	struct slice name = token;

	if (slash != NULL)
		name = (struct slice){ slash + 1,
			(size_t)(token.ptr + token.len - slash - 1) };
	while (name.len > 0 && name.ptr[0] == '-') {
		name.ptr++;
		name.len--;
	}
	name = compared(name);
	return name.len > 0 && (is_built_in_name(name) ||
				   is_among(name, rules->names, rules->nnames));
}

bool
redact_is_value(const struct redact_rules *rules, struct slice token)
{
	struct slice value = compared(token);

	for (size_t i = 0; i < nitems(secret_values); i++)
		if (environment_matches((struct slice){ secret_values[i],
					    strlen(secret_values[i]) },
			value))
			return true;
	return is_among(value, rules->values, rules->nvalues);
}

bool
redact_is_pair_option(struct slice token)
{
	for (size_t i = 0; i < nitems(pair_options); i++)
		if (slice_equal(token, (struct slice){ pair_options[i],
					   strlen(pair_options[i]) }))
			return true;
	return false;
}
