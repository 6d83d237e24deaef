/* SPDX-License-Identifier: ISC */
/*
 * The socket under a TLS connection. libssl splits one write into records of 16
 * KiB. They are collected here and written together. What the socket does not
 * accept is kept here.
 */
#ifndef TLS_SOCKET_H
#define TLS_SOCKET_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Room for a few records. A write should end when no further record fits. */
#define TLS_GATHER_BYTES (128u << 10)

/* Call once, before the first connection. Returns false without memory. */
bool tls_socket_init(void);

/* Sets the socket of tls. fd stays the caller's. Returns false without
 * memory. */
bool tls_socket_set(SSL *tls, int fd);

/* Collects records until tls_socket_end_gathering(). Until then only
 * SSL_write_ex() may be called. */
void tls_socket_gather(SSL *tls);

/* Returns true if another record fits. */
bool tls_socket_has_room(SSL *tls);

/* Writes the records, after what was kept before. Returns 0, or -errno; -EAGAIN
 * means that some bytes were kept. */
int tls_socket_end_gathering(SSL *tls);

/* Returns a pointer to the number of bytes that were encrypted but not yet
 * reported as written, because they are kept here. For tls_writev(). */
size_t *tls_socket_owed(SSL *tls);

#endif
