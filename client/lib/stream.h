/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a connection: a TCP or UNIX socket, TLS over TCP, or a
 * command's standard input and output. Never blocks, but for the names that
 * stream_resolve() looks up.
 */
#ifndef STREAM_H
#define STREAM_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "url.h"

#define STREAM_ADDRESSES_MAX 16

struct ssl_ctx_st;
struct ssl_st;

/* What every connection to an endpoint needs; made once. */
struct stream_config {
	struct sockaddr_storage addresses[STREAM_ADDRESSES_MAX];
	socklen_t lengths[STREAM_ADDRESSES_MAX];
	size_t naddresses;
	struct ssl_ctx_st *tls; /* owned; NULL: no TLS */
};

struct stream {
	int in, out;	    /* owned; the same number for a socket; or -1 */
	pid_t child;	    /* of a stdio endpoint; 0: none */
	struct ssl_st *tls; /* owned */
	short tls_wants;    /* what the handshake waits for, as of poll(2) */
};

/* Looks the host up, for at most timeout_ms. 0, or -errno with *error, owned
 * by the caller. */
int stream_resolve(struct stream_config *config, const struct endpoint *e,
    unsigned int timeout_ms, char **error);
/* Certificates and keys: -EINVAL with *error. Files may be NULL. */
int stream_tls_config(struct stream_config *config, const char *ca_file,
    const char *certificate_file, const char *key_file, char **error);
void stream_config_clear(struct stream_config *config);

/* Of a read or write that failed: strerror(3), but for what a server says of
 * our certificate. */
const char *stream_strerror(int err);

void stream_init(struct stream *s);
/* Begins to connect to addresses[i] (or starts the command). 0: connected;
 * -EINPROGRESS: stream_connected() when it is writable; -errno. */
int stream_connect(struct stream *s, const struct endpoint *e,
    const struct stream_config *config, size_t i);
/* 0, or why the connection failed. */
int stream_connected(struct stream *s);
/* TLS: 0: done; -EAGAIN: poll for tls_wants; -EACCES: the certificate is not
 * the host's, -EPROTO: anything else, both with *error. */
int stream_handshake(struct stream *s, const struct endpoint *e,
    const struct stream_config *config, char **error);
/* Bytes, 0 at the end of the stream, -EAGAIN, -errno. -EPROTO: TLS. */
ssize_t stream_read(struct stream *s, void *p, size_t n);
ssize_t stream_write(struct stream *s, const void *p, size_t n);
/* Has bytes that poll(2) does not know of. */
bool stream_has_input(const struct stream *s);
/* Also ends the command, with SIGKILL if it must be. */
void stream_close(struct stream *s);

#endif
