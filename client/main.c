/* SPDX-License-Identifier: ISC */
/*
 * execctl: the client of execd and of every other exec-server (execctl(1)). It
 * runs as the calling user. What a server sends is not trusted.
 */

#include "base.h"
#include "crypto_memory.h"
#include "execctl.h"

/*
 * A caller may have closed 0, 1 or 2. The next file opened would take that
 * number, and the connection would then be read as standard input or mixed
 * with output. open() returns the lowest free number, so this fills them in
 * order. Messages for a closed 2 are dropped. A closed 1 takes nothing: output
 * fails as it does for any program, and is not lost in silence.
 */
static int
open_standard_files(void)
{
	int fd;

	do {
		bool out = fcntl(STDOUT_FILENO, F_GETFD) < 0 &&
			   fcntl(STDIN_FILENO, F_GETFD) >= 0;

		fd = open("/dev/null", out ? O_RDONLY : O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* What a command printed must not be lost in silence. Who reads no further, as
 * head(1), is told nothing, as by ls(1). */
static int
print_the_rest(int code)
{
	int err = fflush(stdout) != 0 ? errno : ferror(stdout) ? EIO : 0;

	if (err != 0 && err != EPIPE)
		execctl_say("standard output: %s", strerror(err));
	return err == 0 || code != 0 ? code
	       : err == EPIPE	     ? 128 + SIGPIPE
				     : EXIT_CTL_REFUSED;
}

int
main(int argc, char **argv)
{
	struct parsed parsed;
	struct execctl ctl;
	int code;

	if (open_standard_files() < 0)
		return EXIT_CTL_REFUSED;
	log_init("execctl", LOG_LEVEL_WARN);
	crypto_memory_init();
	/* Writing to a closed pipe must fail with EPIPE, which is reported. */
	signal(SIGPIPE, SIG_IGN);
	code = options_parse(
	    &parsed, execctl_options, execctl_commands, argc, argv);
	if (code == 0 && parsed.command != NULL) {
		execctl_init(&ctl, &parsed);
		code = parsed.command->run(&ctl);
		execctl_clear(&ctl);
	}
	options_clear(&parsed);
	return print_the_rest(code);
}
