/*
 * The private keys are elsewhere: the key process signs. This program waits
 * for each signature, and not for long.
 */
#ifndef TLS_KEY_H
#define TLS_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"

/* Takes the channel over in place of the one before; -1: there is none. */
void tls_key_set_channel(int fd);

/* Signs with key number `key` under a SignatureScheme of RFC 8446. Returns
 * the signature's length, or -errno: -ETIMEDOUT, -EPIPE (nobody answers),
 * -EPERM (refused), -EMSGSIZE. */
int tls_key_sign(uint32_t key, uint32_t scheme, const void *tbs, size_t len,
    uint8_t signature[CONTROL_SIGNATURE_MAX]);

#endif
