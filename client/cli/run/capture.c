/* SPDX-License-Identifier: ISC */
/*
 * run --capture: keeps the beginning and the end of a command's output.
 */
#include "base.h"
#include "run.h"

void
capture_init(struct capture *c, size_t bytes_max, size_t lines_max)
{
	*c = (struct capture){ .bytes_max = bytes_max,
		.lines_max = lines_max,
		.ends_line = true };
	/* The head can hold all of bytes_max, so short output is shown
	 * unchanged. */
	buf_init(&c->head, bytes_max);
	buf_init(&c->tail, bytes_max * 2);
}

void
capture_clear(struct capture *c)
{
	buf_clear(&c->head);
	buf_clear(&c->tail);
}

static uint64_t
count_lines(const uint8_t *p, size_t n)
{
	uint64_t lines = 0;

	for (const uint8_t *end = p + n;
	     (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
		lines++;
	return lines;
}

/* Keeps the last bytes_max bytes of the output. */
static void
put_tail(struct capture *c, const uint8_t *p, size_t n)
{
	if (n > c->bytes_max) {
		p += n - c->bytes_max;
		n = c->bytes_max;
	}
	buf_put(&c->tail, p, n);
	if (c->tail.len > c->bytes_max)
		buf_consume(&c->tail, c->tail.len - c->bytes_max);
}

void
capture_put(struct capture *c, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t room = c->bytes_max - c->head.len;

	if (len == 0)
		return;
	c->bytes += len;
	c->lines += count_lines(p, len);
	c->ends_line = p[len - 1] == '\n';
	buf_put(&c->head, p, len < room ? len : room);
	put_tail(c, p, len);
}

/* Returns the bytes of the first `lines` lines, at most bytes_max / 2. */
static size_t
head_bytes(const struct capture *c, size_t lines)
{
	size_t n = 0, max = c->bytes_max / 2;
	const uint8_t *p = c->head.data;

	if (max > c->head.len)
		max = c->head.len;
	while (n < max && lines > 0)
		if (p[n++] == '\n')
			lines--;
	return n;
}

static size_t
tail_bytes(const struct capture *c, size_t lines)
{
	size_t n = 0, max = c->bytes_max / 2;
	const uint8_t *end = c->tail.data + c->tail.len;

	if (max > c->tail.len)
		max = c->tail.len;
	/* The newline at the very end belongs to the last line. */
	if (n < max && end[-1] == '\n')
		n++;
	while (n < max) {
		if (*(end - n - 1) == '\n' && --lines == 0)
			break;
		n++;
	}
	return n;
}

bool
capture_text(const struct capture *c, struct buf *text)
{
	uint64_t lines = c->lines + !c->ends_line;
	size_t head, tail;
	uint64_t kept;

	if (c->bytes <= c->bytes_max && lines <= c->lines_max) {
		buf_put(text, c->head.data, c->head.len);
		return false;
	}
	head = head_bytes(c, c->lines_max / 2);
	tail = tail_bytes(c, c->lines_max - c->lines_max / 2);
	kept = head + tail;
	buf_put(text, c->head.data, head);
	if (head > 0 && c->head.data[head - 1] != '\n')
		buf_puts(text, "\n");
	buf_printf(text,
	    "[%" PRIu64 " bytes left out of %" PRIu64 " bytes in %" PRIu64
	    " lines]\n",
	    c->bytes - (kept < c->bytes ? kept : c->bytes), c->bytes, lines);
	buf_put(text, c->tail.data + c->tail.len - tail, tail);
	return true;
}
