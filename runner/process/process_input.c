/* SPDX-License-Identifier: ISC */
/* A running command's input and terminal, as the client uses them. */
#include <errno.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "process.h"

/*
 * Puts the end-of-file character of a terminal into text and returns how often
 * to send it. After an unfinished line it only sends the line, so it is sent
 * twice. Without line editing it is an ordinary character and is sent once. 0:
 * the terminal has no such character.
 */
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
	/* The command's terminal has ended with it. */
	if (p->streams[0].fd < 0)
		return 0;
	return ioctl(p->streams[0].fd, TIOCSWINSZ, &ws) < 0 ? -errno : 0;
}
