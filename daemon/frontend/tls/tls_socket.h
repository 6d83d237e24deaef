/* SPDX-License-Identifier: ISC */
/*
 * The socket under a connection's TLS. What libssl makes of one write, records
 * of 16 KiB, leaves together; what the socket does not take then waits here.
 */
#ifndef TLS_SOCKET_H
#define TLS_SOCKET_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Room for a few records; a write is to end when they do not fit any more. */
#define TLS_GATHER_BYTES (128u << 10)

/* Once, before the first connection. False: no memory. */
bool tls_socket_init(void);

/* Gives tls its socket; fd stays the caller's. False: no memory. */
bool tls_socket_set(SSL *tls, int fd);

/* From now on records are kept together, until the end. Nothing else of
 * libssl is called meanwhile. */
void tls_socket_gather(SSL *tls);

/* Is there room for another record? */
bool tls_socket_has_room(SSL *tls);

/* They are written, behind what waited. 0, or -errno: -EAGAIN when some of
 * it waits. */
int tls_socket_end_gathering(SSL *tls);

/* Plaintext that was encrypted but not reported as written, because it waits:
 * for tls_writev(). */
size_t *tls_socket_owed(SSL *tls);

#endif
