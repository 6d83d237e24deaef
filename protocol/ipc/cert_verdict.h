/* SPDX-License-Identifier: ISC */
/*
 * The verdict of the certificate process on a client's certificate. It travels
 * to the broker through the front-end, which is not trusted. It is therefore
 * sealed with HMAC-SHA-256 (RFC 2104), under a secret that only the certificate
 * process and the broker know.
 */
#pragma once

#include <stdbool.h>

#include "control.h"

/* Computes the seal over all other fields. */
void cert_verdict_seal(
    struct control_cert_verdict *v, const uint8_t secret[CONTROL_SECRET_BYTES]);

/* Returns true if the seal was made with that secret. */
bool cert_verdict_is_sealed(const struct control_cert_verdict *v,
    const uint8_t secret[CONTROL_SECRET_BYTES]);
