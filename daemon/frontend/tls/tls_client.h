/* SPDX-License-Identifier: ISC */
/*
 * Certificates of clients: libssl checks that the client has the key, the
 * certificate process judges the certificate, and its verdict goes to the
 * broker, who decides whose it is.
 */
#ifndef TLS_CLIENT_H
#define TLS_CLIENT_H

#include <openssl/types.h>

#include "control.h"

/* Once, before any context. Fatal on failure. */
void tls_client_init(void);

/* Has client certificates asked for, as the listener wants them, and judged.
 * 0 or -ENOMEM. */
int tls_client_ask(SSL_CTX *ctx, const struct control_listener *l);

/* Of a client that showed a good one; NULL: it showed none. The TLS's. */
const struct control_cert_verdict *tls_client_verdict(const SSL *tls);

/*
 * Why the handshake failed, if it was the client's certificate: a sentence,
 * until the next call, and -EACCES; -EIO if it could not be judged. Else 0.
 */
int tls_client_refusal(const SSL *tls, const char **why);

#endif
