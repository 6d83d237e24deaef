/*
 * [audit] of execd.conf(5).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf.h"
#include "util.h"

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct audit_rules, member)           \
	}

static const struct conf_key keys[] = {
	KEY("file", conf_path, file),
	KEY("required", conf_bool, required),
};

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->audit;
}

static void *
object(const struct conf *c, size_t i)
{
	return i == 0 && c->audit.file ? (void *)(uintptr_t)&c->audit : NULL;
}

static int
check(struct conf *c, void *o, char *why)
{
	struct audit_rules *a = o;
	int err;

	if (a->file == NULL) {
		snprintf(why, CONF_WHY_MAX, "file is missing");
		return -EINVAL;
	}
	err = audit_check(a);
	if (err == 0)
		return 0;
	snprintf(why, CONF_WHY_MAX, "%.200s: %s", a->file, strerror(-err));
	return -EINVAL;
}

const struct conf_section conf_audit = { "audit", false, keys, nitems(keys),
	add, object, check };
