/* SPDX-License-Identifier: ISC */
/*
 * A running command's input and terminal, from the client's side.
 */
#include <errno.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "process.h"

/* What says "end of file" on a terminal; once behind an unfinished line it
 * only sends the line, so it is said twice. Without line editing it is one
 * character like others. 0: nothing says it. */
static size_t
end_of_file(int master, char text[2])
{
	struct termios t;

	if (tcgetattr(master, &t) < 0 || t.c_cc[VEOF] == _POSIX_VDISABLE)
		return 0;
	text[0] = text[1] = (char)t.c_cc[VEOF];
	return t.c_lflag & ICANON ? 2 : 1;
}

static void
ignore_answer(void *arg, enum input_status status)
{
}

int
process_end_input(struct process *p)
{
	char text[2];
	size_t n = p->tty ? end_of_file(p->input.fd, text) : 0;

	if (n > 0 &&
	    input_write(&p->input, SLICE(""), (struct slice){ text, n },
		ignore_answer, NULL) == INPUT_FULL)
		return -ENOBUFS;
	input_finish(&p->input);
	return 0;
}

int
process_resize(struct process *p, uint16_t rows, uint16_t cols)
{
	struct winsize ws = { .ws_row = rows, .ws_col = cols };

	if (!p->tty)
		return -ENOTTY;
	/* Its terminal is gone with it. */
	if (p->streams[0].fd < 0)
		return 0;
	return ioctl(p->streams[0].fd, TIOCSWINSZ, &ws) < 0 ? -errno : 0;
}
