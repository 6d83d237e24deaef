/* SPDX-License-Identifier: ISC */
/*
 * Whose certificates the certificate process believes: per listener the client
 * CAs and what they revoked (RFC 5280). It holds no private key, so that a
 * hostile certificate that breaks a parser finds none.
 */
#ifndef TRUST_H
#define TRUST_H

#include "control.h"

/* Takes the CA's certificates and, if crl_fd is not -1, revocation lists: then
 * every CA in a chain must have one. The descriptors stay the caller's. 0 or
 * -EINVAL. */
int trust_add(uint32_t listener, int ca_fd, int crl_fd);

/* Is there a client CA at all? */
bool trust_is_there(void);

/* Judges a chain. 0 with the answer's error, and its verdict filled in but not
 * sealed; -EPERM: nobody asks this. */
int trust_verify(
    const struct control_verify *request, struct control_verified *answer);

#endif
