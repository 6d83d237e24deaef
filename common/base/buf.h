/* SPDX-License-Identifier: ISC */
/*
 * A growing byte buffer with a hard limit, and a reader of bytes.
 *
 * Writing: a put beyond the limit sets `failed` and drops its bytes, so the
 * caller checks once at the end. Reading: a get beyond the end sets `failed`
 * and returns zero. buf_end() also refuses leftover bytes, so a message
 * consists of exactly its fields.
 */
#pragma once

#include "base.h"

struct buf {
	uint8_t *data; /* owned */
	size_t len;
	size_t cap;
	size_t limit; /* the most bytes that this buffer may hold */
	bool failed;
};

void buf_init(struct buf *b, size_t limit);
/* frees the bytes; the buffer can be used again */
void buf_clear(struct buf *b);

/* Returns room for n more bytes at the end, or NULL with `failed` set. The
 * caller fills the room and calls buf_commit(). The pointer is valid until the
 * next call for b. */
uint8_t *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s); /* without the NUL */
void buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_u32(struct buf *b, uint32_t v); /* little-endian */
void buf_put_u64(struct buf *b, uint64_t v);
/* a u32 length, then the bytes */
void buf_put_string(struct buf *b, const char *s, size_t n);

/* Removes n bytes from the front. */
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

/* Reads a string with a u32 length into dst[cap] and terminates it with a NUL.
 * A string that contains a NUL, or has cap bytes or more, fails. Returns its
 * length. */
size_t buf_get_string(struct buf_reader *r, char *dst, size_t cap);

/* Returns 0, or -EBADMSG if a get failed or bytes are left over. */
int buf_end(const struct buf_reader *r);
