/* SPDX-License-Identifier: ISC */
/*
 * The socket under a TLS connection, in the front-end.
 */
#include "tls_socket.h"

#include <assert.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "util.h"

/* The size of a record, with header, tag, and what a cipher may add. */
#define RECORD_MAX (16384 + 512)

struct tls_socket {
	int fd;
	bool gathering;
	struct buf rest; /* waits for the socket */
	size_t at;	 /* this much of it is written */
	size_t owed;
};

/* Shared, because only one connection writes at a time. */
static uint8_t gathered[TLS_GATHER_BYTES];
static size_t gathered_len;
static BIO_METHOD *method;

static struct tls_socket *
socket_of(SSL *tls)
{
	return BIO_get_data(SSL_get_wbio(tls));
}

/* Writes what was kept. Returns 0, or -errno; -EAGAIN means that some bytes are
 * left. */
static int
flush_rest(struct tls_socket *s)
{
	while (s->at < s->rest.len) {
		ssize_t n =
		    write(s->fd, s->rest.data + s->at, s->rest.len - s->at);

		if (n < 0)
			return errno == EINTR ? -EAGAIN : -errno;
		s->at += (size_t)n;
	}
	buf_clear(&s->rest);
	s->at = 0;
	return 0;
}

static int
retry_write(BIO *b, int err)
{
	if (err == -EAGAIN || err == -EINTR)
		BIO_set_retry_write(b);
	return -1;
}

static int
bio_write(BIO *b, const char *p, int n)
{
	struct tls_socket *s = BIO_get_data(b);
	ssize_t written;
	int err;

	BIO_clear_retry_flags(b);
	if (s->gathering) {
		if ((size_t)n > sizeof(gathered) - gathered_len)
			return retry_write(b, -EAGAIN);
		memcpy(gathered + gathered_len, p, (size_t)n);
		gathered_len += (size_t)n;
		return n;
	}
	err = flush_rest(s);
	if (err < 0)
		return retry_write(b, err);
	written = write(s->fd, p, (size_t)n);
	return written < 0 ? retry_write(b, -errno) : (int)written;
}

static int
bio_read(BIO *b, char *p, int n)
{
	struct tls_socket *s = BIO_get_data(b);
	ssize_t got = read(s->fd, p, (size_t)n);

	BIO_clear_retry_flags(b);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(b);
	return (int)got;
}

static long
bio_ctrl(BIO *b, int what, long value, void *p)
{
	return what == BIO_CTRL_FLUSH; /* there is nothing else to control */
}

static int
bio_destroy(BIO *b)
{
	struct tls_socket *s = BIO_get_data(b);

	if (s != NULL)
		buf_clear(&s->rest);
	free(s);
	return 1;
}

bool
tls_socket_init(void)
{
	method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "execd socket");
	return method != NULL && BIO_meth_set_write(method, bio_write) == 1 &&
	       BIO_meth_set_read(method, bio_read) == 1 &&
	       BIO_meth_set_ctrl(method, bio_ctrl) == 1 &&
	       BIO_meth_set_destroy(method, bio_destroy) == 1;
}

bool
tls_socket_set(SSL *tls, int fd)
{
	BIO *b = BIO_new(method);
	struct tls_socket *s;

	if (b == NULL)
		return false;
	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	buf_init(&s->rest, TLS_GATHER_BYTES);
	BIO_set_data(b, s);
	BIO_set_init(b, 1);
	SSL_set_bio(tls, b, b);
	return true;
}

void
tls_socket_gather(SSL *tls)
{
	assert(gathered_len == 0);
	socket_of(tls)->gathering = true;
}

bool
tls_socket_has_room(SSL *tls)
{
	return sizeof(gathered) - gathered_len >= RECORD_MAX;
}

int
tls_socket_end_gathering(SSL *tls)
{
	struct tls_socket *s = socket_of(tls);
	size_t len = gathered_len, at = 0;
	int err = flush_rest(s);
	ssize_t n;

	s->gathering = false;
	gathered_len = 0;
	while (err == 0 && at < len) {
		n = write(s->fd, gathered + at, len - at);
		if (n < 0)
			err = errno == EINTR ? -EAGAIN : -errno;
		else
			at += (size_t)n;
	}
	if (err == -EAGAIN)
		buf_put(&s->rest, gathered + at, len - at);
	return err;
}

size_t *
tls_socket_owed(SSL *tls)
{
	return &socket_of(tls)->owed;
}
