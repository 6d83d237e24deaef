/* SPDX-License-Identifier: ISC */
#include "buf.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#define BUF_FIRST_BYTES 256

/* From this size on, page faults cost more than copying the bytes. */
#define HUGE_FROM_BYTES (4u << 20)

void
buf_init(struct buf *b, size_t limit)
{
	*b = (struct buf){ .limit = limit };
}

void
buf_clear(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ .limit = b->limit };
}

/* This is only advice; small pages work as well. It covers the whole mapping:
 * otherwise the kernel would split the mapping, and it could not grow in
 * place. */
static void
ask_for_huge_pages(uint8_t *p, size_t n)
{
#ifdef __linux__
	const uintptr_t page = 4096;
	uintptr_t from = (uintptr_t)p & ~(page - 1);
	uintptr_t to = ((uintptr_t)p + n + page - 1) & ~(page - 1);

	madvise((void *)from, to - from, MADV_HUGEPAGE);
#endif
}

uint8_t *
buf_reserve(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : BUF_FIRST_BYTES;

	if (b->failed || n > b->limit - b->len) {
		b->failed = true;
		return NULL;
	}
	if (n <= b->cap - b->len)
		return b->data + b->len;
	while (cap - b->len < n)
		cap *= 2;
	if (cap > b->limit)
		cap = b->limit;
	b->data = xreallocarray(b->data, cap, 1);
	b->cap = cap;
	if (cap >= HUGE_FROM_BYTES)
		ask_for_huge_pages(b->data, cap);
	return b->data + b->len;
}

void
buf_commit(struct buf *b, size_t n)
{
	b->len += n;
}

void
buf_put(struct buf *b, const void *p, size_t n)
{
	uint8_t *at = n > 0 ? buf_reserve(b, n) : NULL;

	if (at == NULL)
		return;
	memcpy(at, p, n);
	b->len += n;
}

void
buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void
buf_printf(struct buf *b, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(text))
		b->failed = true;
	else
		buf_put(b, text, (size_t)n);
}

void
buf_put_u8(struct buf *b, uint8_t v)
{
	buf_put(b, &v, 1);
}

void
buf_put_u32(struct buf *b, uint32_t v)
{
	uint8_t le[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
		(uint8_t)(v >> 24) };

	buf_put(b, le, sizeof(le));
}

void
buf_put_u64(struct buf *b, uint64_t v)
{
	buf_put_u32(b, (uint32_t)v);
	buf_put_u32(b, (uint32_t)(v >> 32));
}

void
buf_put_string(struct buf *b, const char *s, size_t n)
{
	buf_put_u32(b, (uint32_t)n);
	buf_put(b, s, n);
}

void
buf_consume(struct buf *b, size_t n)
{
	if (n < b->len)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void
buf_reader_init(struct buf_reader *r, const void *p, size_t n)
{
	*r = (struct buf_reader){ .p = p, .left = n };
}

void
buf_get(struct buf_reader *r, void *dst, size_t n)
{
	if (r->failed || n > r->left) {
		r->failed = true;
		memset(dst, 0, n);
		return;
	}
	if (n > 0)
		memcpy(dst, r->p, n);
	r->p += n;
	r->left -= n;
}

uint8_t
buf_get_u8(struct buf_reader *r)
{
	uint8_t v;

	buf_get(r, &v, 1);
	return v;
}

uint32_t
buf_get_u32(struct buf_reader *r)
{
	uint8_t le[4];

	buf_get(r, le, sizeof(le));
	return (uint32_t)le[0] | (uint32_t)le[1] << 8 | (uint32_t)le[2] << 16 |
	       (uint32_t)le[3] << 24;
}

uint64_t
buf_get_u64(struct buf_reader *r)
{
	uint64_t low = buf_get_u32(r);

	return low | (uint64_t)buf_get_u32(r) << 32;
}

size_t
buf_get_string(struct buf_reader *r, char *dst, size_t cap)
{
	size_t n = buf_get_u32(r);

	dst[0] = '\0';
	if (r->failed || n >= cap || n > r->left ||
	    (n > 0 && memchr(r->p, '\0', n) != NULL)) {
		r->failed = true;
		return 0;
	}
	buf_get(r, dst, n);
	dst[n] = '\0';
	return n;
}

int
buf_end(const struct buf_reader *r)
{
	return r->failed || r->left > 0 ? -EBADMSG : 0;
}
