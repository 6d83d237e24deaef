/* SPDX-License-Identifier: ISC */
/*
 * What the key process signs: the handshake of a TLS server and nothing else,
 * so that whoever holds the front-end cannot have anything signed or
 * decrypted with the key.
 */
#ifndef SIGN_H
#define SIGN_H

#include <openssl/types.h>

#include "control.h"

/*
 * Is this what a server signs under that scheme? CertificateVerify of TLS 1.3
 * (RFC 8446 section 4.4.3), or the parameters of a ServerKeyExchange with a
 * named curve (RFC 8422 section 5.4). 0 or -EPERM.
 */
int sign_check(const struct control_sign *request);

/* Signs with the key, if the scheme fits it. 0 with the answer's len and
 * signature, or -errno with len 0. */
int sign_make(EVP_PKEY *key, const struct control_sign *request,
    struct control_signed *answer);

#endif
