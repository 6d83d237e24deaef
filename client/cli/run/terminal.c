/* SPDX-License-Identifier: ISC */
/*
 * The user's terminal, which becomes raw and is restored, and the signals for
 * the command that come from it or from a script.
 */
#include "base.h"
#include "run.h"

#include <sys/ioctl.h>

#include "capabilities.h"
#include "terminal_modes.h"

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
terminal_suspend(void)
{
	tcsetattr(STDIN_FILENO, TCSADRAIN, &saved);
	/* All of a pipeline stop, as with ^Z. SIGCONT makes it raw again. */
	kill(0, SIGTSTP);
}

void
terminal_print(const char *text)
{
	size_t len = strlen(text);

	while (len > 0) {
		ssize_t n = write(STDIN_FILENO, text, len);

		if (n < 0 && errno != EINTR)
			return;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

size_t
terminal_modes(uint8_t *text)
{
	struct termios t;

	return tcgetattr(STDIN_FILENO, &t) < 0 ? 0
					       : terminal_modes_put(&t, text);
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

bool
terminal_is_gone(void)
{
	struct termios t;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (tcgetattr(fd, &t) < 0 && errno == EIO)
			return true;
	return false;
}

/*
 * Forwards the signals that a user or a script sends to execctl to the command.
 */

#define INTERRUPTS_MAX 3 /* then the command is killed */

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,
	SIGUSR2 };

/* nohup execctl: the command is to go on without the user's terminal. A signal
 * that is ignored would come out of the signalfd all the same. */
static bool
is_deaf(void)
{
	struct sigaction action;

	return sigaction(SIGHUP, NULL, &action) == 0 &&
	       action.sa_handler == SIG_IGN;
}

/* Seconds that the command has to end after SIGTERM. Then its session ends, for
 * which the server has as long again. After that execctl exits, even if the
 * server or a standard stream blocks. */
#define TERMINATED_S 2

static volatile sig_atomic_t known_code = EXIT_CTL_UNKNOWN;

/* Calls only async-signal-safe functions, because it runs in a signal
 * handler. */
static void
leave_now(int sig)
{
	static const char text[] =
	    "execctl: SIGTERM: what becomes of the command is unknown\n";

	terminal_restore();
	if (known_code == EXIT_CTL_UNKNOWN &&
	    write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(EXIT_CTL_UNKNOWN);
	_exit(known_code);
}

static void
session_ended(void *arg)
{
	struct run *r = arg;

	if (r->ctl->end.done)
		run_finish(r, 128 + SIGKILL);
	else if (!r->done)
		run_finish(r,
		    execctl_fail(r->ctl, EXIT_CTL_UNKNOWN,
			"the session could not be ended; what becomes of the "
			"command is unknown"));
}

/*
 * What the command started must not outlive it, as it would in a session that
 * nobody has any more.
 */
static void
end_all(void *arg)
{
	struct run *r = arg;

	if (r->done)
		return;
	r->ctl->end.told = session_ended;
	r->ctl->end.arg = r;
	execctl_say("SIGTERM: the command has not ended within %d s; its "
		    "session is ended, and all that it started",
	    TERMINATED_S);
	execctl_end_session(r->ctl);
}

/* Tells whether execctl may end the session of the command. */
static bool
may_end_all(const struct run *r)
{
	return r->ctl->ends &&
	       execd_client_can(r->ctl->client, CAN_END_SESSION);
}

/* The command gets the signal. If it does not end in time, its session ends,
 * or execctl leaves. */
static void
leave_soon(struct run *r)
{
	struct sigaction action = { .sa_handler = leave_now };

	if (r->terminated.fire != NULL)
		return;
	r->terminated.fire = end_all;
	r->terminated.arg = r;
	sigaction(SIGALRM, &action, NULL);
	alarm(may_end_all(r) ? 2 * TERMINATED_S : TERMINATED_S);
	if (may_end_all(r))
		timer_set(r->ctl, &r->terminated, TERMINATED_S * 1000);
}

void
terminal_resize(struct run *r)
{
	unsigned int rows, cols;

	if (r->tty && !r->read_only && terminal_size(&rows, &cols))
		execd_process_resize(r->process, rows, cols);
}

/* So long the terminal has another size: a program that draws a screen looks
 * at the size when SIGWINCH comes, and draws again if it has changed. */
#define NUDGE_MS 100

static void
nudged(void *arg)
{
	terminal_resize(arg);
}

void
run_repaint(void *arg)
{
	struct run *r = arg;
	unsigned int rows, cols;

	if (!r->started || r->done || !r->tty || r->read_only ||
	    !terminal_size(&rows, &cols))
		return;
	execd_process_resize(r->process, rows > 1 ? rows - 1 : rows + 1, cols);
	r->repaint.fire = nudged;
	r->repaint.arg = r;
	timer_set(r->ctl, &r->repaint, NUDGE_MS);
}

/* execctl leaves if the command does not get the signal: because execctl only
 * watches or reads, or because the connection is lost. */
static bool
leave(struct run *r, int sig)
{
	if (r->read_only || r->reads) {
		run_leave(r, 128 + sig);
		return true;
	}
	if (execd_client_lost_ms(r->ctl->client) == 0)
		return false;
	run_finish(
	    r, execctl_fail(r->ctl, EXIT_CTL_UNKNOWN,
		   "SIG%s while the connection is lost; what becomes of the "
		   "command is unknown",
		   sigabbrev_np(sig)));
	return true;
}

static void
forward(struct run *r, int sig)
{
	const char *name = sigabbrev_np(sig);
	int err;

	if (sig == SIGTERM)
		leave_soon(r);
	if (leave(r, sig))
		return;
	if (sig == SIGINT && ++r->interrupts >= INTERRUPTS_MAX) {
		execctl_say("the command does not end by SIGINT; it is killed");
		run_abandon(r, 128 + SIGKILL);
		return;
	}
	err = execd_process_signal(r->process, name);
	if (err != -ENOTSUP)
		return;
	if (sig == SIGUSR1 || sig == SIGUSR2) {
		execctl_say(
		    "the server can only send SIGINT; SIG%s is dropped", name);
		return;
	}
	execctl_say(
	    "the server can only send SIGINT and SIGKILL; for SIG%s the "
	    "command is killed",
	    name);
	run_abandon(r, 128 + sig);
}

/* The kernel and the user's shell both send SIGHUP then, and the second would
 * end an editor that is saving. */
void
run_hang_up(struct run *r)
{
	if (r->hung_up)
		return;
	r->hung_up = true;
	timer_remove(r->ctl, &r->drained);
	if (!is_deaf())
		forward(r, SIGHUP);
}

static void
ready(void *arg)
{
	struct run *r = arg;
	int signal = signals_take(&r->signals);

	/* A shell may have changed the mode. */
	if (signal == SIGCONT && is_raw)
		set_raw();
	if (signal == SIGCONT || signal == SIGWINCH)
		terminal_resize(r);
	else if (signal == SIGHUP && terminal_is_gone())
		run_hang_up(r);
	else if (signal != 0)
		forward(r, signal);
}

static void
fill(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < nitems(forwarded); i++)
		if (forwarded[i] != SIGHUP || !is_deaf())
			sigaddset(set, forwarded[i]);
	sigaddset(set, SIGWINCH);
	sigaddset(set, SIGCONT);
}

int
run_signals_begin(struct run *r)
{
	sigset_t set;

	fill(&set);
	r->signals.ready = ready;
	r->signals.arg = r;
	return signals_watch(r->ctl, &r->signals, &set);
}

void
run_signals_end(struct run *r)
{
	sigset_t set;

	if (!r->signals.added)
		return;
	if (r->done)
		known_code = r->code;
	source_remove(r->ctl, &r->signals);
	close(r->signals.fd);
	fill(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
