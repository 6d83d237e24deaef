/* SPDX-License-Identifier: ISC */
/*
 * Room in a command's pipes. A pipe is made with the kernel's 64 KiB; one that
 * proves busy gets more, so that the command and the runner need not wake each
 * other for every 64 KiB. An idle command costs nothing.
 */
#ifndef WIDE_PIPE_H
#define WIDE_PIPE_H

#include <stdbool.h>
#include <stdint.h>

/* Of one end that is ours. All zero: as it was made. */
struct wide_pipe {
	uint8_t times_full;
	bool asked;
	bool wide;
};

/* The pipe was found full. After a few times it is widened, if the kernel and
 * the share of this runner permit; what is no pipe stays as it is. */
void wide_pipe_note_full(struct wide_pipe *w, int fd);

/* It is closed: others may have its share. */
void wide_pipe_end(struct wide_pipe *w);

#endif
