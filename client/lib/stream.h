/* SPDX-License-Identifier: ISC */
/*
 * The bytes of a connection: a TCP or UNIX socket, TLS over TCP, or the
 * standard input and output of a command. Only stream_resolve() and
 * stream_close() of a command may block.
 */
#pragma once

#include "base.h"
#include "url.h"

#define STREAM_ADDRESSES_MAX 16

struct ssl_ctx_st;
struct ssl_st;

/* What every connection to an endpoint needs; it is made once. */
struct stream_config {
	struct sockaddr_storage addresses[STREAM_ADDRESSES_MAX];
	socklen_t lengths[STREAM_ADDRESSES_MAX];
	size_t naddresses;
	struct ssl_ctx_st *tls; /* owned; NULL: no TLS */
	bool any_key; /* the handshake accepts each: the caller judges it */
};

/* A fingerprint is SHA256: and 43 characters, and a NUL follows. */
#define STREAM_KEY_MAX 64

struct stream {
	int in, out;	    /* owned; equal for a socket; -1: closed */
	pid_t child;	    /* of a stdio endpoint; 0: none */
	struct ssl_st *tls; /* owned */
	short tls_wants;    /* poll(2) events that the handshake waits for */
	uint64_t written;   /* bytes, without TLS */
};

/* Looks up the host for at most timeout_ms. Returns 0, or -errno with *error,
 * which the caller frees. */
int stream_resolve(struct stream_config *config, const struct endpoint *e,
    unsigned int timeout_ms, char **error);
/* Loads certificates and keys. Returns 0, or -EINVAL with *error, which the
 * caller frees. The file names may be NULL. */
int stream_tls_config(struct stream_config *config, const char *ca_file,
    const char *certificate_file, const char *key_file, char **error);
void stream_config_clear(struct stream_config *config);

/* Describes the -errno of a failed read or write. Like strerror(3), but also
 * explains how a server rejects our certificate. */
const char *stream_strerror(int err);

void stream_init(struct stream *s);
/* Begins to connect to addresses[i], or starts the command. Returns 0 if it is
 * connected, -EINPROGRESS if stream_connected() must be called once it is
 * writable, or -errno. */
int stream_connect(struct stream *s, const struct endpoint *e,
    const struct stream_config *config, size_t i);
/* Returns 0, or -errno if the connection failed. */
int stream_connected(struct stream *s);
/* Continues the TLS handshake. Returns 0 when it is done; -EAGAIN: poll for
 * tls_wants; -EACCES: the server's certificate is refused; -EPROTO: any other
 * error. With the last two the caller frees *error. */
int stream_handshake(struct stream *s, const struct endpoint *e,
    const struct stream_config *config, char **error);
/* Asks the system's or the given authorities about the server's certificate.
 * Returns 0, -ENOKEY if none of them signed it, or -EACCES. Unless it is 0, the
 * caller frees *error. */
int stream_verdict(const struct stream *s, const char *host, char **error);
/* Writes the fingerprint of the server's public key, after the handshake.
 * Returns 0, or -EPROTO if the server has none. */
int stream_server_key(const struct stream *s, char key[STREAM_KEY_MAX]);
/* Return the number of bytes, 0 at the end of the stream, -EAGAIN, or -errno.
 * -EPROTO is a TLS error. */
ssize_t stream_read(struct stream *s, void *p, size_t n);
ssize_t stream_write(struct stream *s, const void *p, size_t n);
/* Tells whether TLS holds bytes that poll(2) does not show. */
bool stream_has_input(const struct stream *s);
/* Tells whether bytes wait in this kernel: over TCP for the peer's kernel, on a
 * UNIX socket for whoever reads it. */
bool stream_is_behind(const struct stream *s);
/* Returns how many bytes were taken of those that were sent. Over UNIX sockets
 * it is less, by what the kernel keeps with each message, so only its growth
 * counts. It may wrap around. */
uint64_t stream_taken(const struct stream *s);
/* Closes the stream. Ends its command too: waits up to 2 s, then sends
 * SIGKILL. */
void stream_close(struct stream *s);

/* Starts a command of the shell with pipes to and from it, which do not block.
 * `alone' puts it into a session of its own: ^C of the terminal does not reach
 * it, and all of its processes can be ended together. Returns its pid or
 * -errno. */
pid_t stream_start(const char *command, bool alone, int *to, int *from);

/* Waits until the process of a pidfd has ended, and tells whether it has. */
bool stream_wait(int pidfd, int timeout_ms);
