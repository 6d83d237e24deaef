/* SPDX-License-Identifier: ISC */
/*
 * TLS of a client's connection: TLS 1.2 with AEAD and 1.3, server side. The
 * certificate comes as bytes, the key never comes (tls_provider.h).
 */
#ifndef TLS_H
#define TLS_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "control.h"

/* Loads and opens what libssl would later: before this program is confined. */
void tls_init(void);

/* For a listener with TLS. NULL after logging why. The descriptors stay the
 * caller's; client_ca_fd is -1 for none. The context is the caller's. */
SSL_CTX *tls_context(
    const struct control_listener *l, int chain_fd, int client_ca_fd);
void tls_context_free(SSL_CTX *ctx); /* NULL is fine */

/* A connection's TLS on its socket; the descriptor stays the caller's. */
SSL *tls_new(SSL_CTX *ctx, int fd);
void tls_free(SSL *tls); /* NULL is fine */

/* One turn of the handshake: 0 it is done, -EAGAIN with *wants_write, or with
 * why (static) -EPROTO, -EACCES the client's certificate is refused, -EIO it
 * could not be judged. */
int tls_handshake(SSL *tls, bool *wants_write, const char **why);

/* As read(2) and writev(2). *wants_write: the bytes come when the socket
 * takes some of ours. */
ssize_t tls_read(SSL *tls, void *p, size_t n, bool *wants_write);
ssize_t tls_writev(SSL *tls, const struct iovec *iov, int n);

/* Bytes that were decrypted, and that no event will tell of. */
bool tls_has_bytes(SSL *tls);

/* Says goodbye, if the socket takes it. */
void tls_shutdown(SSL *tls);

#endif
