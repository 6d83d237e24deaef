/* SPDX-License-Identifier: ISC */
/*
 * The certificate process's word about a client's certificate, on its way to
 * the broker through a front-end that is trusted with nothing: sealed with
 * HMAC-SHA-256 (RFC 2104) under a secret that only the two of them have.
 */
#ifndef CERT_VERDICT_H
#define CERT_VERDICT_H

#include <stdbool.h>

#include "control.h"

/* Sets the seal over all other fields. */
void cert_verdict_seal(
    struct control_cert_verdict *v, const uint8_t secret[CONTROL_SECRET_BYTES]);

/* Is it the seal of that secret? */
bool cert_verdict_is_sealed(const struct control_cert_verdict *v,
    const uint8_t secret[CONTROL_SECRET_BYTES]);

#endif
