/* SPDX-License-Identifier: ISC */
/*
 * What main() of execd-keys calls here.
 */
#pragma once

#include <openssl/types.h>

#include "control.h"

/* --- sign.c ------------------------------------------------------------- */

/*
 * Signs the handshake of a TLS server and nothing else. Whoever controls the
 * front-end can therefore not use the key to sign or decrypt anything else.
 */

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

/* --- trust.c ------------------------------------------------------------ */

/*
 * Verifies certificates of clients, in the certificate process: for each
 * listener, the client CAs and their revocation lists (RFC 5280). This process
 * holds no private key, so a hostile certificate that breaks a parser finds
 * none.
 */

/* Adds the certificates of a CA to a listener and, if crl_fd is not -1,
 * revocation lists; then every CA in a chain must have one. The descriptors
 * stay the caller's. Returns 0 or -EINVAL. */
int trust_add(uint32_t listener, int ca_fd, int crl_fd);

/* Returns true if any client CA was added. */
bool trust_is_there(void);

/* Verifies a chain. Returns 0 with the answer's error, and with its verdict,
 * which is not sealed yet. Returns -EPERM for a request that no honest
 * front-end makes. */
int trust_verify(
    const struct control_verify *request, struct control_verified *answer);
