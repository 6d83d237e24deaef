/* SPDX-License-Identifier: ISC */
/*
 * Signed bearer tokens: JWT with HS256 (RFC 7519, RFC 7515; doc/protocol.md
 * section 1.5). The signature comes before any of the JSON is parsed. Pure.
 */
#ifndef JWT_H
#define JWT_H

#include "control.h"

#define JWT_SUBJECT_MAX 256 /* with NUL */

struct jwt_rules {
	const uint8_t *secret;
	size_t secret_len;
	const char *issuer;   /* NULL: whatever */
	const char *audience; /* NULL: whatever */
	uint32_t skew_s;
};

/* now_s: seconds since 1970. GRANTED: the `sub` claim, or "" without one that
 * fits. */
enum verdict jwt_verify(const struct jwt_rules *r, const char *token,
    int64_t now_s, char subject[JWT_SUBJECT_MAX]);

#endif
