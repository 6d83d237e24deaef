/* SPDX-License-Identifier: ISC */
/* Enlarges a command's pipes. Program: execd-runner. */
#include "wide_pipe.h"

#include <fcntl.h>

/* The new size, and how often the pipe must have been full. */
#define WIDE_BYTES (1 << 20)
#define FULL_TIMES 4

/*
 * The pipes of one user may hold 64 MiB together; beyond that the kernel makes
 * new ones tiny. A runner enlarges no more pipes than this.
 */
#define WIDE_MAX 16

static unsigned wide_pipes;

void
wide_pipe_note_full(struct wide_pipe *w, int fd)
{
	if (w->asked || ++w->times_full < FULL_TIMES)
		return;
	w->asked = true;
	if (wide_pipes == WIDE_MAX)
		return;
	/* If the kernel refuses, the pipe is used as it is. */
	w->wide = fcntl(fd, F_SETPIPE_SZ, WIDE_BYTES) >= 0;
	wide_pipes += w->wide;
}

void
wide_pipe_end(struct wide_pipe *w)
{
	wide_pipes -= w->wide;
	*w = (struct wide_pipe){ 0 };
}
