/*
 * The private keys are elsewhere: the key process signs. This program waits
 * for each signature, and not for long.
 */
#ifndef TLS_KEY_H
#define TLS_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"

/* A key, as the front-end has it: whom to ask for which. */
struct tls_key {
	uint32_t epoch; /* tls_key_epoch() of when it was made */
	uint32_t number;
};

/* Takes the channel over; -1: there is none. The one before goes on for the
 * keys of its epoch, until it is retired. */
void tls_key_set_channel(int fd);

/* Ends the channel before the newest one. */
void tls_key_retire(void);

/* Which channel is the newest: counts up. */
uint32_t tls_key_epoch(void);

/* Signs under a SignatureScheme of RFC 8446. Returns the signature's length,
 * or -errno: -ETIMEDOUT, -EPIPE (nobody answers), -EPERM (refused),
 * -EMSGSIZE. */
int tls_key_sign(const struct tls_key *key, uint32_t scheme, const void *tbs,
    size_t len, uint8_t signature[CONTROL_SIGNATURE_MAX]);

#endif
