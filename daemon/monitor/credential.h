/*
 * Who may connect: what the operator's flags say, and whether a presented
 * credential satisfies it. Decided here and nowhere else (PROTOCOL.md section
 * 1.5, DESIGN.md section 2).
 */
#ifndef CREDENTIAL_H
#define CREDENTIAL_H

#include "control.h"
#include "options.h"

struct credential_rules {
	enum auth_mode mode;
	uint8_t digest[32]; /* AUTH_CAPABILITY_TOKEN: its SHA-256 */
	uint8_t *secret;    /* AUTH_SIGNED_TOKEN; owned */
	size_t secret_len;
	const struct options *options;
};

/* Reads the secrets. 0, or an exit code after printing why. */
int credential_init(struct credential_rules *r, const struct options *o);

enum verdict credential_verify(const struct credential_rules *r,
    const struct control_authenticate *presented, int64_t now_s);

#endif
