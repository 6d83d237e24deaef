/* SPDX-License-Identifier: ISC */
/*
 * Limits for the messages of control.h.
 */
#pragma once

/* the channel's descriptor in every child of execd */
#define CONTROL_FD 3
/* A runner's: the lists of its user's placeholders (placeholder.h). */
#define PLACEHOLDERS_FD	    5
#define CONTROL_MESSAGE_MAX (32u << 10)
/* the longest that a request can hold */
#define CONTROL_CREDENTIAL_MAX (16u << 10)
#define CONTROL_PEER_MAX       96 /* "websocket [::1]:65535", with NUL */
#define CONTROL_SESSION_ID_MAX 40 /* a UUID, with NUL */
#define CONTROL_GROUP_MAX      32 /* name of a control group, with NUL */
#define CONTROL_IDENTITY_MAX   80 /* name of an identity, with NUL */
#define CONTROL_HOST_TAG_MAX   64 /* of a host among several, with NUL */

/* The names of control groups of sessions: this prefix and a number. They
 * contain no session id, because local users can see them. */
#define SESSION_GROUP_PREFIX "session-"
/* of the group that has all sessions of an identity in it */
#define IDENTITY_GROUP_PREFIX "identity-"
#define CONTROL_STRING_MAX    1024
#define CONTROL_PATH_MAP_MAX  2048 /* PATH_MAP_TEXT_MAX */
/* the variable that has the path map in a file helper's environment */
#define CONTROL_PATH_MAP_ENV "EXECD_PATH_MAP"
#define CONTROL_HOST_MAX     254 /* NETPROXY_HOST_BYTES */
#define CONTROL_RULE_MAX     272 /* NETPROXY_RULE_BYTES */
#define CONTROL_GRANT_BYTES  16
#define CONTROL_SUBJECT_MAX  256
#define CONTROL_ALG_MAX	     16	 /* of a signed token, with NUL */
#define CONTROL_KID_MAX	     256 /* likewise */
#define CONTROL_SECRET_BYTES 32

/*
 * Limits for the configured patterns of secrets. The broker reads the patterns,
 * and runners use them.
 */

#define REDACT_PATTERNS_MAX  32 /* for names and for values separately */
#define REDACT_PATTERN_CHARS 60
