/* SPDX-License-Identifier: ISC */
/*
 * Room in a command's pipes (runner).
 */
#include "wide_pipe.h"

#include <fcntl.h>

/* What it is widened to, when it was full so often. */
#define WIDE_BYTES (1 << 20)
#define FULL_TIMES 4

/* A user's pipes have room for 64 MiB together; beyond it the kernel makes new
 * ones tiny. A runner takes no more than this many wide ones of it. */
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
	/* Refused: it serves as it is. */
	w->wide = fcntl(fd, F_SETPIPE_SZ, WIDE_BYTES) >= 0;
	wide_pipes += w->wide;
}

void
wide_pipe_end(struct wide_pipe *w)
{
	wide_pipes -= w->wide;
	*w = (struct wide_pipe){ 0 };
}
