/* SPDX-License-Identifier: ISC */
/*
 * A growing byte buffer with a hard limit, and a reader that fails once.
 *
 * Writing: any put beyond the limit sets `failed` and drops the bytes; check
 * once at the end. Reading: any get beyond the end sets `failed` and yields
 * zero; buf_end() also refuses leftover bytes, so a message is exactly its
 * fields.
 */
#ifndef BUF_H
#define BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util.h"

struct buf {
	uint8_t *data; /* owned */
	size_t len;
	size_t cap;
	size_t limit; /* bytes this buffer may ever hold */
	bool failed;
};

void buf_init(struct buf *b, size_t limit);
void buf_clear(struct buf *b); /* frees; the buffer may be used again */

/* Room for n more bytes at the end, or NULL (failed is set). Commit with
 * buf_commit(). The pointer lives until the next call on b. */
uint8_t *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s); /* without its NUL */
void buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_u32(struct buf *b, uint32_t v); /* little-endian */
void buf_put_u64(struct buf *b, uint64_t v);
void buf_put_string(struct buf *b, const char *s, size_t n); /* u32 + bytes */

/* Drops n bytes from the front. */
void buf_consume(struct buf *b, size_t n);

struct buf_reader {
	const uint8_t *p;
	size_t left;
	bool failed;
};

void buf_reader_init(struct buf_reader *r, const void *p, size_t n);
uint8_t buf_get_u8(struct buf_reader *r);
uint32_t buf_get_u32(struct buf_reader *r);
uint64_t buf_get_u64(struct buf_reader *r);
void buf_get(struct buf_reader *r, void *dst, size_t n);

/* A string of u32 length into dst[cap], NUL-terminated; a string with an
 * inner NUL or of cap bytes and more fails. Returns its length. */
size_t buf_get_string(struct buf_reader *r, char *dst, size_t cap);

/* 0, or -EBADMSG when a get failed or bytes are left over. */
int buf_end(const struct buf_reader *r);

#endif
