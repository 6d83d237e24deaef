/*
 * What every child of the monitor is given, and nothing else.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "control.h"
#include "log.h"
#include "util.h"

void
child_reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

void
child_take_descriptors(int control_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		log_fatal_errno(-errno, "/dev/null");
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		log_fatal_errno(-errno, "standard descriptors");
	if (move_fd(control_fd, CONTROL_FD, false) < 0)
		log_fatal_errno(-errno, "the control descriptor");
	close_from(CONTROL_FD + 1);
}
