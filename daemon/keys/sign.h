/* SPDX-License-Identifier: ISC */
/*
 * Signs the handshake of a TLS server and nothing else. Whoever controls the
 * front-end can therefore not use the key to sign or decrypt anything else.
 */
#ifndef SIGN_H
#define SIGN_H

#include <openssl/types.h>

#include "control.h"

/*
 * Checks that the bytes are what a TLS server signs under that scheme:
 * CertificateVerify of TLS 1.3 (RFC 8446 section 4.4.3), or the parameters of a
 * ServerKeyExchange with a named curve (RFC 8422 section 5.4). Returns 0 or
 * -EPERM.
 */
int sign_check(const struct control_sign *request);

/* Signs with the key if the scheme fits the key. Returns 0 and sets the
 * answer's signature and len, or returns -errno with len 0. */
int sign_make(EVP_PKEY *key, const struct control_sign *request,
    struct control_signed *answer);

#endif
