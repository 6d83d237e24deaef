/* SPDX-License-Identifier: ISC */
/*
 * run --capture: keeps standard output and error in the order of arrival. The
 * text is limited in bytes and lines; half of it comes from the beginning and
 * half from the end.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include "buf.h"

/* What the reference client shows its model of a command's output. */
#define CAPTURE_BYTES 10240
#define CAPTURE_LINES 256

/* Both buffers keep up to bytes_max bytes; lines are counted later. */
struct capture {
	size_t bytes_max, lines_max;
	struct buf head;
	struct buf tail;
	uint64_t bytes; /* bytes received */
	uint64_t lines; /* newlines received */
	bool ends_line; /* the last byte was a newline */
};

void capture_init(struct capture *c, size_t bytes_max, size_t lines_max);
void capture_clear(struct capture *c);
void capture_put(struct capture *c, const void *data, size_t len);
/* Appends the kept text to `text`. If something was left out, a line in the
 * middle says so and the result is true. */
bool capture_text(const struct capture *c, struct buf *text);

#endif
