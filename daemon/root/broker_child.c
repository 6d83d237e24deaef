/* SPDX-License-Identifier: ISC */
/*
 * Starts the broker. It is not root: its program becomes a user of its own
 * before it does anything else. An ordinary user's broker has this user.
 */
#include "base.h"
#include "root.h"

#include <pwd.h>

#include "child.h"
#include "children.h"
#include "config.h"
#include "exit_code.h"

/* systemd's sockets begin at this number. The broker finds them where it would
 * find them if systemd had started it (sd_listen_fds(3)). */
#define FIRST_LISTEN_FD 3

static int
listen_fds(void)
{
	const char *n = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");

	if (n == NULL || pid == NULL || atoi(pid) != (int)getppid())
		return 0;
	return atoi(n) > 0 ? atoi(n) : 0;
}

static void
set_number(const char *name, int value)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

/* Passes on to the broker what systemd told this program. */
static void
set_environment(int channel)
{
	if (listen_fds() > 0)
		set_number("LISTEN_PID", (int)getpid());
	unsetenv("WATCHDOG_PID");
	set_number(SPAWN_CHANNEL_VARIABLE, channel);
}

/*
 * The program itself becomes the user, at a time when nobody can look into it
 * any more. If it was executed as the user, the user's other processes could
 * read it until then. The C library's modules that know users run here, and not
 * in root's execd.
 */
static void
set_user(void)
{
	char user[CHILD_USER_MAX];
	const struct passwd *pw = getpwnam(EXECD_BROKER_USER);

	if (pw == NULL || pw->pw_uid == 0) {
		fputs(
		    "execd: the broker needs a user of its own, and there is "
		    "no `" EXECD_BROKER_USER "`; create it with\n"
		    "  useradd --system --no-create-home --home-dir "
		    "/nonexistent --shell /usr/sbin/nologin " EXECD_BROKER_USER
		    "\n",
		    stderr);
		_exit(EXIT_CONFIG);
	}
	setenv(
	    BROKER_USER_VARIABLE, child_user(user, pw->pw_uid, pw->pw_gid), 1);
	child_set_groups(NULL, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_fatal_errno(-errno, "no new privileges");
}

static void __attribute__((noreturn))
child(int program, int channel, pid_t parent)
{
	int n = FIRST_LISTEN_FD + listen_fds();

	children_reset_signals();
	setsid();
	for (int fd = FIRST_LISTEN_FD; fd < n; fd++)
		fcntl(fd, F_SETFD, 0);
	if (channel != n && dup2(channel, n) < 0)
		log_fatal_errno(-errno, "the spawn channel");
	fcntl(n, F_SETFD, 0);
	set_environment(n);
	if (root.is_root)
		set_user();
	/* Without root's execd the broker would serve nobody. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		log_fatal("root's execd is gone");
	fexecve(program, root.argv, environ);
	log_fatal_errno(-errno, "execd-broker");
}

pid_t
broker_child_start(int program, int channel)
{
	pid_t parent = getpid(), pid;

	if (program < 0)
		return -ENOENT;
	pid = fork();
	if (pid == 0)
		child(program, channel, parent);
	return pid < 0 ? -errno : pid;
}

void
broker_child_become(void)
{
	char missing[PATH_MAX];
	int program = programs_open_one(INSTALLED_BROKER, missing);

	if (program >= 0)
		fexecve(program, root.argv, environ);
	log_error(program < 0 ? program : -errno, "%s", missing);
}
