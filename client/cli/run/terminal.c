/* SPDX-License-Identifier: ISC */
/*
 * Puts the user's terminal into raw mode and back.
 */
#include "terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios saved;
static bool is_raw;

static int
set_raw(void)
{
	struct termios raw = saved;

	cfmakeraw(&raw);
	return tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0 ? -errno : 0;
}

int
terminal_raw(void)
{
	static bool registered;
	int err;

	if (tcgetattr(STDIN_FILENO, &saved) < 0)
		return -errno;
	if (!registered && atexit(terminal_restore) != 0)
		return -ENOMEM;
	registered = true;
	err = set_raw();
	is_raw = err == 0;
	return err;
}

void
terminal_restore(void)
{
	if (!is_raw)
		return;
	is_raw = false;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
}

void
terminal_raw_again(void)
{
	if (is_raw)
		set_raw();
}

bool
terminal_size(unsigned int *rows, unsigned int *cols)
{
	struct winsize size;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 ||
	    size.ws_col == 0)
		return false;
	*rows = size.ws_row;
	*cols = size.ws_col;
	return true;
}
