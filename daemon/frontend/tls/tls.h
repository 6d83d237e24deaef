/* SPDX-License-Identifier: ISC */
/*
 * TLS on a client's connection, server side: TLS 1.3, and TLS 1.2 with AEAD.
 * The certificate arrives as bytes. The private key stays in the key process
 * (tls_helper.h).
 */
#pragma once

#include <openssl/types.h>
#include <sys/uio.h>

#include "control.h"

/* Loads and opens what libssl would use later. Call before the program is
 * confined. */
void tls_init(void);

/* Makes a context for a listener with TLS, which is the caller's, or returns
 * NULL after logging why. The descriptors stay the caller's. client_ca_fd is -1
 * if client certificates are not asked for. */
SSL_CTX *tls_context(
    const struct control_listener *l, int chain_fd, int client_ca_fd);
void tls_context_free(SSL_CTX *ctx); /* ctx may be NULL */

/* Makes the TLS of a connection on its socket. fd stays the caller's. */
SSL *tls_new(SSL_CTX *ctx, int fd);
void tls_free(SSL *tls); /* tls may be NULL */

/*
 * Continues the handshake. Returns 0 when it is complete, or -EAGAIN with
 * *wants_write. Otherwise *why is a static text, and the result is -EPROTO,
 * -ENOTCONN (the client left without a byte), -EACCES (its certificate is
 * refused) or -EIO (it could not be verified).
 */
int tls_handshake(SSL *tls, bool *wants_write, const char **why);

/* Like read(2) and writev(2). *wants_write is set if TLS must write before it
 * can read more. */
ssize_t tls_read(SSL *tls, void *p, size_t n, bool *wants_write);
ssize_t tls_writev(SSL *tls, const struct iovec *iov, int n);

/* Returns true if decrypted bytes can be read, for which no event will come. */
bool tls_has_bytes(SSL *tls);

/* Sends the closing alert, if the socket accepts it. */
void tls_shutdown(SSL *tls);

/* Returns the verdict on a valid client certificate, or NULL if there was none.
 * It is valid as long as tls. */
const struct control_cert_verdict *tls_client_verdict(const SSL *tls);
