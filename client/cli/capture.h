/* SPDX-License-Identifier: ISC */
/*
 * run --capture: standard output and error in the order they came, no more
 * than so many bytes and lines of them, half from the beginning and half from
 * the end.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include "buf.h"

/* What the reference client keeps of a command for its model. */
#define CAPTURE_BYTES 10240
#define CAPTURE_LINES 256

/* Of each half, before its lines are counted. */
struct capture {
	size_t bytes_max, lines_max;
	struct buf head;
	struct buf tail;
	uint64_t bytes; /* that came */
	uint64_t lines; /* newlines that came */
	bool ends_line; /* the last byte was a newline */
};

void capture_init(struct capture *c, size_t bytes_max, size_t lines_max);
void capture_clear(struct capture *c);
void capture_put(struct capture *c, const void *data, size_t len);
/* The text that is kept, with a line that says what is not. True: something
 * was left out. */
bool capture_text(const struct capture *c, struct buf *text);

#endif
