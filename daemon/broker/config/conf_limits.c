/* SPDX-License-Identifier: ISC */
/*
 * [limits] of execd.conf(5). Most keys are flags as well, for example
 * --detached-ttl.
 */
#include "conf.h"
#include "util.h"

#define LIMIT(keyword, type, member, ...)                                      \
	{ keyword, &conf_##type, offsetof(struct limits, member), __VA_ARGS__, \
		.size = sizeof(VALUE_##type) },
#define FRONTEND_LIMIT(keyword, type, member, ...)                             \
	LIMIT(keyword, type, frontend.member, __VA_ARGS__)

/* clang-format off */
static const struct conf_key keys[] = {
	BROKER_LIMITS(LIMIT)
#include "frontend_keys.def"
};
/* clang-format on */
_Static_assert(nitems(keys) <= 64, "conf_read.c counts them in 64 bits");

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->limits;
}

static void *
object(const struct conf *c, size_t i)
{
	return i == 0 ? (void *)(uintptr_t)&c->limits : NULL;
}

static int
check(struct conf *c, void *o, char *why)
{
	const struct frontend_limits *l = &((const struct limits *)o)->frontend;

	if (l->max_frame_bytes > l->max_message_bytes)
		return conf_refuse(
		    why, "max-frame-bytes is more than max-message-bytes");
	if (l->penalty_max_ms > 0 &&
	    l->penalty_max_ms <= l->penalty_threshold_ms)
		return conf_refuse(why,
		    "penalty-max is not more than penalty-threshold: "
		    "nobody would be refused");
	return 0;
}

const struct conf_section conf_limits = { "limits", false, keys, nitems(keys),
	add, object, check };
