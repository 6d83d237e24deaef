/* SPDX-License-Identifier: ISC */
/*
 * Verifies certificates of clients, in the certificate process: for each
 * listener, the client CAs and their revocation lists (RFC 5280). This process
 * holds no private key, so a hostile certificate that breaks a parser finds
 * none.
 */
#ifndef TRUST_H
#define TRUST_H

#include "control.h"

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

#endif
