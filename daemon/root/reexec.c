/* SPDX-License-Identifier: ISC */
/*
 * The next version of this program takes over. Before anything is given up, the
 * next version is asked in a process of its own: it reads the current state and
 * looks for its other programs. Only if it agrees, this version executes it.
 */
#include "base.h"
#include "root.h"

#include "child.h"
#include "children.h"
#include "descriptors.h"
#include "saved.h"

/* The variable that tells the next version the descriptor of the state. */
#define STATE_VARIABLE "EXECD_STATE"

/* The time that it has to answer. */
#define CHECK_MS 5000

static pid_t checker;	 /* the process that was asked; 0: none */
static int program = -1; /* what it executed, and this one will */
static int64_t until_ms; /* when its time ends */
static bool agreed;	 /* it can take over */

static void
refuse(int err, const char *why)
{
	log_error(err, "re-exec: %s; this execd goes on", why);
	if (program >= 0)
		close(steal_fd(&program));
}

/* --- the next version's side --------------------------------------------- */

static int
read_state(int fd)
{
	uint32_t version = 0;
	int err = saved_read(fd, &version);

	if (err == -EPROTO)
		log_error(0,
		    "re-exec: the state has version %u, and this execd reads "
		    "versions %d to %d",
		    version, SAVED_OLDEST, SAVED_VERSION);
	else if (err < 0)
		log_error(err, "re-exec: the state cannot be read");
	return err;
}

int
reexec_check(void)
{
	char missing[PATH_MAX];
	struct programs p;
	int err = read_state(CONTROL_FD);

	if (err == 0)
		err = task_init(missing);
	if (err == 0 && (err = programs_open(&p, missing)) < 0)
		log_error(err, "re-exec: %s", missing);
	return err < 0 ? 1 : REEXEC_YES;
}

bool
reexec_resume(void)
{
	const char *text = getenv(STATE_VARIABLE);
	int fd = text != NULL ? atoi(text) : -1;

	if (fd < 0)
		return false;
	unsetenv(STATE_VARIABLE);
	if (read_state(fd) < 0)
		exit(1); /* checked before; the kernel ends all children */
	saved_descriptors(SAVED_GUARD);
	/* The kernel named the program after the descriptor. */
	prctl(PR_SET_NAME, "execd");
	log_info("re-exec: this version goes on");
	return true;
}

/* --- this version's side ------------------------------------------------- */

static void __attribute__((noreturn)) check_child(int state, pid_t parent)
{
	char *argv[] = { (char *)(uintptr_t) "execd",
		(char *)(uintptr_t)REEXEC_CHECK, NULL };
	char *none[] = { NULL };

	children_reset_signals();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		log_fatal("root's execd is gone");
	child_exec(program, state, argv, none);
}

void
reexec_ask(void)
{
	pid_t parent = getpid();
	_cleanup_close_ int state = -1;

	if (checker > 0 || agreed || root.stopping) {
		log_info("re-exec: not now, %s", checker > 0 || agreed
						     ? "it is under way"
						     : "everything ends");
		return;
	}
	program = programs_open_self();
	if (program < 0) {
		refuse(program, "the installed execd");
		return;
	}
	state = saved_write();
	if (state < 0) {
		refuse(state, "writing down the state");
		return;
	}
	until_ms = now_ms() + CHECK_MS;
	checker = fork();
	if (checker == 0)
		check_child(state, parent);
	if (checker > 0)
		return;
	checker = 0;
	refuse(-errno, "asking the installed execd");
}

bool
reexec_has(pid_t pid)
{
	return checker > 0 && pid == checker;
}

/* Returns only on failure. */
static int
execute(int state)
{
	char text[16];
	int err;

	snprintf(text, sizeof(text), "%d", state);
	setenv(STATE_VARIABLE, text, 1);
	saved_descriptors(SAVED_KEEP);
	fcntl(state, F_SETFD, 0);
	log_flush();
	descriptors_restore();
	execveat(program, "", root.argv, environ, AT_EMPTY_PATH);
	err = -errno;
	descriptors_raise(UINT64_MAX);
	saved_descriptors(SAVED_GUARD);
	unsetenv(STATE_VARIABLE);
	return err;
}

static void
take_over(void)
{
	/* The state that was checked is old by now. */
	_cleanup_close_ int state = saved_write();

	if (state < 0)
		refuse(state, "writing down the state");
	else
		refuse(execute(state), "executing the installed execd");
}

void
reexec_reap(void)
{
	char why[64];
	int status;

	if (checker == 0 || waitpid(checker, &status, WNOHANG) != checker)
		return;
	checker = 0;
	if (root.stopping) {
		close(steal_fd(&program));
		return;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == REEXEC_YES) {
		agreed = true;
		return;
	}
	snprintf(why, sizeof(why), "the installed execd %s %d",
	    WIFEXITED(status) ? "exited with status" : "was killed by signal",
	    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	refuse(0, why);
}

int64_t
reexec_watch(int64_t now)
{
	/* The list of a broker that is on its way is not part of the state. */
	if (agreed && root.next.pid == 0 && root.next.channel < 0) {
		agreed = false;
		take_over();
	}
	if (checker == 0)
		return -1;
	if (now < until_ms)
		return until_ms;
	log_error(0, "re-exec: no answer in %d s: killing it", CHECK_MS / 1000);
	kill(checker, SIGKILL);
	until_ms = now + CHECK_MS;
	return until_ms;
}
