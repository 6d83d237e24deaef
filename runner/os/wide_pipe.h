/* SPDX-License-Identifier: ISC */
/*
 * Enlarges a command's pipes. The kernel makes a pipe with 64 KiB. A busy one
 * gets more, so that the command and the runner need not wake each other for
 * each 64 KiB. An idle command costs nothing.
 */
#ifndef WIDE_PIPE_H
#define WIDE_PIPE_H

#include <stdbool.h>
#include <stdint.h>

/* The state of our end of a pipe. All zero: not enlarged. */
struct wide_pipe {
	uint8_t times_full;
	bool asked;
	bool wide;
};

/*
 * Called when the pipe was found full. After a few times it is enlarged, if the
 * kernel and this runner's share permit. Anything that is not a pipe stays as
 * it is.
 */
void wide_pipe_note_full(struct wide_pipe *w, int fd);

/* Called when the pipe is closed, so that others can have its share. */
void wide_pipe_end(struct wide_pipe *w);

#endif
