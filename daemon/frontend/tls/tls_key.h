/* SPDX-License-Identifier: ISC */
/*
 * The private keys are elsewhere: the key process signs (tls_helper.h).
 */
#ifndef TLS_KEY_H
#define TLS_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "control.h"

/* A key, as the front-end has it: whom to ask for which. */
struct tls_key {
	uint32_t epoch; /* helper_epoch() of when it was made */
	uint32_t number;
};

/* Signs under a SignatureScheme of RFC 8446. Returns the signature's length,
 * or -errno: those of helper_ask(), -EPERM (refused), -EMSGSIZE. */
int tls_key_sign(const struct tls_key *key, uint32_t scheme, const void *tbs,
    size_t len, uint8_t signature[CONTROL_SIGNATURE_MAX]);

#endif
