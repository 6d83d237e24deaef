/* SPDX-License-Identifier: ISC */
/*
 * A program that is installed as execd and is none: the last byte of its file
 * says what it does (test_reexec.py).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int
main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	char last = 0;

	if (fd < 0 || lseek(fd, -1, SEEK_END) < 0 || read(fd, &last, 1) != 1)
		return 99;
	if (last == 'k')
		raise(SIGKILL);
	while (last == 's')
		pause();
	return last == '0' ? 0 : 7;
}
