/* SPDX-License-Identifier: ISC */
/*
 * The text of a JWT: made, and verified as front-end and broker do it together.
 */
#pragma once

#include <string.h>

#include "base64.h"
#include "broker_request.h"
#include "jwt.h"

/* Encodes bytes as base64url without padding and appends them to the token. The
 * token's array has room for them. */
static inline void
append_part(char *token, const void *bytes, size_t len)
{
	char *at = token + strlen(token);
	size_t n = base64_encode(at, bytes, len);

	while (n > 0 && at[n - 1] == '=')
		n--;
	at[n] = '\0';
	for (char *c = at; *c != '\0'; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
}

static inline enum verdict
verify_token(const struct jwt_rules *r, const char *token, int64_t now_s,
    struct jwt_answer *answer)
{
	struct control_token_header named;

	token_header_read((struct slice){ token, strlen(token) }, &named);
	return jwt_verify(r, token, &named, now_s, answer);
}
