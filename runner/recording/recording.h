/* SPDX-License-Identifier: ISC */
/*
 * Records a terminal as asciicast v2 (docs.asciinema.org/manual/asciicast/v2):
 * what the command wrote, the changes of the terminal's size, and what was
 * typed if the operator wants it.
 *
 * The broker opens the file, where the session's user has no access, and passes
 * its descriptor. Each event is one write to a regular file, which does not
 * block. When the limit is reached, nothing more is recorded, and the recording
 * says so.
 */
#pragma once

#include "base.h"

/* The first bytes of a character that is not complete yet. */
struct recording_rest {
	uint8_t bytes[4];
	size_t len;
};

struct recording {
	int fd; /* owned; -1: ended */
	int64_t began_us;
	uint64_t room_bytes; /* left of its limit */
	bool input;	     /* record what is typed too */
	struct recording_rest output_rest, input_rest;
};

/* The content of the first line. */
struct recording_title {
	unsigned rows, cols;
	const char *command, *title;
	const char *term, *shell; /* NULL: left out */
};

/*
 * Begins a recording. Takes fd over. Returns 0, or -errno if nothing is
 * recorded.
 */
int recording_begin(struct recording *c, int fd, uint64_t max_bytes, bool input,
    const struct recording_title *title);

/*
 * Return 0, or -errno if the write failed and ended the recording; -EFBIG: the
 * limit is reached. Once it has ended, they always return 0.
 */
int recording_output(struct recording *c, const void *data, size_t len);
int recording_input(struct recording *c, const void *data, size_t len);
int recording_resize(struct recording *c, unsigned rows, unsigned cols);

/*
 * Writes an incomplete character at the end of the output and closes the file.
 */
void recording_end(struct recording *c);
