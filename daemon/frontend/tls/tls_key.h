/* SPDX-License-Identifier: ISC */
/*
 * Signs with private keys that the key process holds (tls_helper.h).
 */
#ifndef TLS_KEY_H
#define TLS_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"

/* A key as the front-end knows it: its number, and which key process has it. */
struct tls_key {
	uint32_t epoch; /* helper_epoch() when the key was made */
	uint32_t number;
};

/* Signs with a SignatureScheme of RFC 8446. Returns the length of the
 * signature, or -errno: those of helper_ask(), -EPERM (the key process
 * refused), -EMSGSIZE. */
int tls_key_sign(const struct tls_key *key, uint32_t scheme, const void *tbs,
    size_t len, uint8_t signature[CONTROL_SIGNATURE_MAX]);

#endif
