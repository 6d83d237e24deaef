/* SPDX-License-Identifier: ISC */
/*
 * [limits] of execd.conf(5). Most keys are flags as well, for example
 * --detached-ttl.
 */
#include <errno.h>
#include <stdio.h>

#include "conf.h"
#include "util.h"

/* One answer holds the whole retention, in base64. */
#define RETENTION_MAX_BYTES (256u << 20)

static int
parse_retention(void *at, const char *text, char *why)
{
	uint64_t bytes;

	if (conf_bytes.parse(&bytes, text, why) < 0 ||
	    bytes > RETENTION_MAX_BYTES)
		return conf_refuse(why,
		    "`%s` is not a size like 65536, 64K or 1M, at most %uM",
		    text, RETENTION_MAX_BYTES >> 20);
	*(uint64_t *)at = bytes;
	return 0;
}

static void
show_retention(struct buf *b, const void *at)
{
	conf_bytes.show(b, at);
}

static const struct conf_type retention_type = { parse_retention,
	show_retention, NULL, false, false };

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct limits, member)                \
	}

static const struct conf_key keys[] = {
	KEY("detached-ttl", conf_duration, detached_ttl_ms),
	KEY("closed-ttl", conf_duration, closed_ttl_ms),
	KEY("kill-grace", conf_duration, kill_grace_ms),
	KEY("drain-timeout", conf_duration, drain_timeout_ms),
	KEY("drain-notice", conf_duration, drain_notice_ms),
	KEY("exit-when-idle", conf_optional_duration, exit_when_idle_ms),
	KEY("ping-interval", conf_duration, ping_interval_ms),
	KEY("pong-deadline", conf_optional_duration, pong_deadline_ms),
	KEY("pre-auth-deadline", conf_duration, pre_auth_deadline_ms),
	KEY("max-connections", conf_count, max_connections),
	KEY("max-connections-per-source", conf_optional_count, max_per_source),
	KEY("max-unauthenticated", conf_count, max_unauthenticated),
	KEY("max-sessions", conf_count, max_sessions),
	KEY("max-frame-bytes", conf_bytes, max_frame_bytes),
	KEY("max-message-bytes", conf_bytes, max_message_bytes),
	KEY("retention", retention_type, retention_bytes),
	KEY("penalty-authentication", conf_duration, penalty_auth_ms),
	KEY("penalty-deadline", conf_duration, penalty_deadline_ms),
	KEY("penalty-protocol", conf_duration, penalty_protocol_ms),
	KEY("penalty-crash", conf_duration, penalty_crash_ms),
	KEY("penalty-threshold", conf_duration, penalty_threshold_ms),
	KEY("penalty-max", conf_optional_duration, penalty_max_ms),
	KEY("exempt", conf_nets, exempt),
};

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
	const struct limits *l = o;
	const char *text = NULL;

	if (l->ping_interval_ms == 0 || l->pre_auth_deadline_ms == 0)
		text = "ping-interval and pre-auth-deadline cannot be zero";
	else if (l->max_message_bytes > 1u << 30)
		text = "max-message-bytes is at most 1G";
	else if (l->max_frame_bytes > l->max_message_bytes)
		text = "max-frame-bytes is more than max-message-bytes";
	else if (l->penalty_max_ms > 0 &&
		 l->penalty_max_ms <= l->penalty_threshold_ms)
		text = "penalty-max is not more than penalty-threshold: "
		       "nobody would be refused";
	if (text == NULL)
		return 0;
	snprintf(why, CONF_WHY_MAX, "%s", text);
	return -EINVAL;
}

const struct conf_section conf_limits = { "limits", false, keys, nitems(keys),
	add, object, check };
