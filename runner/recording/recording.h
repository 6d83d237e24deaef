/* SPDX-License-Identifier: ISC */
/*
 * The recording of a terminal as asciicast v2
 * (docs.asciinema.org/manual/asciicast/v2): what the command wrote, when its
 * terminal changed its size, and, if the operator wants it, what was typed.
 *
 * The broker opens the file, where the session's user cannot go, and passes
 * its descriptor. Every event is one write to a plain file, which waits for
 * nobody. What does not fit is not recorded, and the recording says so.
 */
#ifndef RECORDING_H
#define RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#include "util.h"

/* The beginning of a character whose end is still to come. */
struct recording_rest {
	uint8_t bytes[4];
	size_t len;
};

struct recording {
	int fd; /* owned; -1: at its end */
	int64_t began_us;
	uint64_t room_bytes; /* that are left of its limit */
	bool input;	     /* what is typed, too */
	struct recording_rest output_rest, input_rest;
};

/* What stands in the first line. */
struct recording_title {
	unsigned rows, cols;
	const char *command, *title;
	const char *term, *shell; /* NULL: not there */
};

/* Takes fd over. 0, or -errno: nothing is recorded. */
int recording_begin(struct recording *c, int fd, uint64_t max_bytes, bool input,
    const struct recording_title *title);

/* 0, or -errno of the write, or -EFBIG, that ended the recording; after it
 * always 0. */
int recording_output(struct recording *c, const void *data, size_t len);
int recording_input(struct recording *c, const void *data, size_t len);
int recording_resize(struct recording *c, unsigned rows, unsigned cols);

/* What waits for the rest of a character is written, and the file closed. */
void recording_end(struct recording *c);

#endif
