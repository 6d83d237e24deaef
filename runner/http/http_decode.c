/* SPDX-License-Identifier: ISC */
/*
 * gzip by zlib (RFC 1952) and zstd by libzstd (RFC 8878). libcurl would decode,
 * too, but takes a stream that ends in its middle for a whole one, and decodes
 * what nobody asked for.
 */
#include "http_decode.h"

#include <strings.h>

/* zlib does not write to its input. */
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

/* zlib: a gzip header is expected, and a window of any size. */
#define GZIP_WINDOW_BITS (16 + MAX_WBITS)

/* As RFC 9659 has it for HTTP: at most 8 MiB are held for one body. */
#define ZSTD_WINDOW_LOG_MAX 23

struct http_decoder {
	ZSTD_DStream *zstd; /* NULL: gzip */
	z_stream gzip;
	bool inside; /* of a member: it must not end here */
	char out[HTTP_DECODE_STEP];
};

bool
http_decoder_knows(const char *coding)
{
	return strcasecmp(coding, "gzip") == 0 ||
	       strcasecmp(coding, "zstd") == 0;
}

struct http_decoder *
http_decoder_new(const char *coding)
{
	struct http_decoder *d = xcalloc(1, sizeof(*d));
	bool made;

	if (strcasecmp(coding, "gzip") == 0) {
		made = inflateInit2(&d->gzip, GZIP_WINDOW_BITS) == Z_OK;
	} else {
		d->zstd = ZSTD_createDStream();
		made = d->zstd != NULL &&
		       !ZSTD_isError(ZSTD_DCtx_setParameter(
			   d->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX));
	}
	if (made)
		return d;
	http_decoder_free(d);
	return NULL;
}

void
http_decoder_free(struct http_decoder *d)
{
	if (d == NULL)
		return;
	if (d->zstd != NULL)
		ZSTD_freeDStream(d->zstd);
	else
		inflateEnd(&d->gzip);
	free(d);
}

/* Without progress it wants more input: Z_BUF_ERROR is no failure. */
static ssize_t
step_gzip(struct http_decoder *d, const char **data, size_t *len)
{
	z_stream *z = &d->gzip;
	size_t n = *len < HTTP_DECODE_STEP ? *len : HTTP_DECODE_STEP;
	int code;

	/* A member follows the last one (RFC 1952 section 2.2). */
	if (!d->inside && n > 0 && inflateReset(z) != Z_OK)
		return -EBADMSG;
	d->inside = d->inside || n > 0;
	z->next_in = (const Bytef *)*data;
	z->avail_in = (uInt)n;
	z->next_out = (Bytef *)d->out;
	z->avail_out = sizeof(d->out);
	code = d->inside ? inflate(z, Z_NO_FLUSH) : Z_OK;
	*data += n - z->avail_in;
	*len -= n - z->avail_in;
	if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
		return -EBADMSG;
	if (code == Z_STREAM_END)
		d->inside = false;
	return (ssize_t)(sizeof(d->out) - z->avail_out);
}

static ssize_t
step_zstd(struct http_decoder *d, const char **data, size_t *len)
{
	ZSTD_inBuffer in = { *data, *len, 0 };
	ZSTD_outBuffer out = { d->out, sizeof(d->out), 0 };
	size_t left;

	if (!d->inside && *len == 0)
		return 0;
	left = ZSTD_decompressStream(d->zstd, &out, &in);
	if (ZSTD_isError(left))
		return -EBADMSG;
	*data += in.pos;
	*len -= in.pos;
	d->inside = left > 0;
	return (ssize_t)out.pos;
}

ssize_t
http_decoder_step(
    struct http_decoder *d, const char **data, size_t *len, const void **out)
{
	size_t before;
	ssize_t n;

	*out = d->out;
	do {
		before = *len;
		n = d->zstd != NULL ? step_zstd(d, data, len)
				    : step_gzip(d, data, len);
	} while (n == 0 && *len > 0 && *len < before);
	/* All of it is used, or it cannot be decoded. */
	return n == 0 && *len > 0 ? -EBADMSG : n;
}

bool
http_decoder_may_end(const struct http_decoder *d)
{
	return !d->inside;
}
