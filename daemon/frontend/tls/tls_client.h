/* SPDX-License-Identifier: ISC */
/*
 * Certificates of clients. libssl checks that the client has the private key.
 * The certificate process verifies the certificate. Its verdict goes to the
 * broker, which decides whose identity it is.
 */
#ifndef TLS_CLIENT_H
#define TLS_CLIENT_H

#include <openssl/types.h>

#include "control.h"

/* Call once, before any context. Fatal on failure. */
void tls_client_init(void);

/* Makes the context ask for client certificates, as the listener requires, and
 * have them verified. Returns 0 or -ENOMEM. */
int tls_client_ask(SSL_CTX *ctx, const struct control_listener *l);

/* Returns the verdict on a valid client certificate, or NULL if there was none.
 * It is valid as long as tls. */
const struct control_cert_verdict *tls_client_verdict(const SSL *tls);

/*
 * Tells why a handshake failed, if it was because of the client's certificate.
 * Returns -EACCES if it was refused, or -EIO if it could not be verified; *why
 * is then a text that is valid until the next call. Otherwise returns 0.
 */
int tls_client_refusal(const SSL *tls, const char **why);

#endif
