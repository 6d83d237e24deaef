/* SPDX-License-Identifier: ISC */
/*
 * [sandbox] of execd.conf(5).
 */
#include <errno.h>

#include "conf.h"
#include "util.h"

#define SANDBOX_KEY(keyword, type, rule, limit, unset)                         \
	{ keyword, &type, offsetof(struct sandbox_rules, rule) },
#define SANDBOX_LIST(keyword, type, member, added)                             \
	{ keyword, &type, offsetof(struct sandbox_rules, member) },

/* clang-format off */
static const struct conf_key keys[] = {
#include "sandbox_keys.def"
};
/* clang-format on */

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->sandbox;
}

static void *
object(const struct conf *c, size_t i)
{
	return i == 0 ? (void *)(uintptr_t)&c->sandbox : NULL;
}

static int
check(struct conf *c, void *o, char *why)
{
	return sandbox_rules_check(o, why) < 0 ? -EINVAL : 0;
}

const struct conf_section conf_sandbox = { "sandbox", false, keys, nitems(keys),
	add, object, check };
