/* SPDX-License-Identifier: ISC */
/*
 * execd: the program that is root, or one ordinary user. It passes its
 * arguments on to the broker, which alone reads them, and does for the broker
 * what needs root (root.h).
 */
#include <sys/signalfd.h>

#include "base.h"
#include "children.h"
#include "descriptors.h"
#include "disk.h"
#include "drop.h"
#include "root.h"
#include "saved.h"
#include "session_cgroup.h"
#include "signals.h"

#define LAST_WORDS_MS 3000 /* for a broker that ends everything */
#define TELL_AGAIN_MS 20   /* while the broker has no room for events */

struct root root = { .programs = PROGRAMS_NONE,
	.listener = -1,
	.kept = -1,
	.serving = BROKER_NONE,
	.next = BROKER_NONE,
	.exit_code = -1,
	.replaceable = true };

/* --- children ------------------------------------------------------------ */

static void
remember_older(pid_t pid, void *arg)
{
	size_t *n = arg;

	if (*n < nitems(root.older))
		root.older[(*n)++] = pid;
}

static bool
is_older(pid_t pid)
{
	for (size_t i = 0; i < nitems(root.older); i++)
		if (root.older[i] == pid)
			return true;
	return false;
}

static bool
is_ours(pid_t pid)
{
	return pid == root.serving.pid || pid == root.next.pid ||
	       is_older(pid) || reexec_has(pid) || runners_have(pid) ||
	       disk_has(pid);
}

/* Killing one orphan may bring its children. Each of them comes with a
 * SIGCHLD. */
static void
end_orphan(pid_t pid, void *arg)
{
	unsigned *found = arg;

	if (is_ours(pid))
		return;
	if (waitpid(pid, NULL, WNOHANG) != 0 || root.is_root)
		return;
	(*found)++;
	kill(pid, SIGKILL);
}

/*
 * This process is a subreaper. It gets what a killed broker leaves behind, and
 * for an ordinary user, who has no pid namespaces, what a killed runner leaves
 * behind. As root it kills none of them, because it may be the first process of
 * a container. Returns how many it killed.
 */
static unsigned
end_orphans(void)
{
	siginfo_t info = { .si_pid = 0 };
	unsigned found = 0;

	if (root.is_root &&
	    (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		info.si_pid == 0 || is_ours(info.si_pid)))
		return 0;
	children_each(end_orphan, &found);
	if (found > 0)
		log_info(
		    "%u orphaned processes of an ended session killed", found);
	return found;
}

/* Runners stay zombies until the broker has heard of their end. */
static void
reap(void)
{
	broker_reap();
	disk_reap();
	end_orphans();
	runners_look();
	runners_tell_exits();
	reexec_reap();
}

/* --- signals ------------------------------------------------------------- */

/* Sessions and their commands must not ignore what the parent ignored. */
static void
ignore_nothing(void)
{
	struct sigaction now;

	for (int sig = 1; sig < NSIG; sig++)
		if (sigaction(sig, NULL, &now) == 0 &&
		    now.sa_handler == SIG_IGN)
			signal(sig, SIG_DFL);
}

static int
watch_signals(void)
{
	static const int watched[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM,
		SIGUSR1, SIGUSR2 };
	sigset_t set;

	ignore_nothing();
	signals_ignore_unused(true);
	sigemptyset(&set);
	for (size_t i = 0; i < nitems(watched); i++)
		sigaddset(&set, watched[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void
hear(struct broker_process *b)
{
	if (b->channel >= 0 && !broker_commands_take(b))
		broker_lose(b, NULL);
}

static void
take_signals(int fd)
{
	struct signalfd_siginfo info;

	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		hear(&root.serving); /* it may have said that it serves */
		if (info.ssi_signo == SIGCHLD)
			reap();
		else if (info.ssi_signo == SIGUSR2)
			reexec_ask();
		else
			broker_signal((int)info.ssi_signo);
	}
}

/* --- the loop ------------------------------------------------------------ */

static int
next_timeout(int64_t now)
{
	int64_t next = broker_watch(now);

	if (!runners_tell_exits())
		next = earlier_ms(next, now + TELL_AGAIN_MS);
	next = earlier_ms(next, reexec_watch(now));
	if (!log_flush())
		next = earlier_ms(next, now + LOG_RETRY_MS);
	if (next < 0)
		return -1;
	return next <= now ? 0 : (int)(next - now);
}

static void
serve(int signals)
{
	while (!root.stopping) {
		int timeout = next_timeout(now_ms());
		/* Set after the timeout, which may start another broker. */
		struct pollfd ready[LOGS_POLL_OWN] = { { .fd = signals,
							   .events = POLLIN },
			{ .fd = root.serving.channel, .events = POLLIN },
			{ .fd = root.listener, .events = POLLIN },
			{ .fd = root.next.channel, .events = POLLIN } };

		if (root.stopping ||
		    (logs_poll(ready, timeout) < 0 && errno != EINTR))
			break;
		take_signals(signals);
		if (ready[1].revents != 0)
			hear(&root.serving);
		if (ready[3].revents != 0)
			hear(&root.next);
		if (ready[2].revents != 0)
			broker_accept();
	}
}

/* Everything ends, because the broker said so or has never served. */
static void
end(void)
{
	int64_t until = now_ms() + LAST_WORDS_MS;
	const struct timespec pause = { .tv_nsec = 1000000 };
	pid_t broker;

	runners_kill_all();
	for (; (broker = broker_any()) > 0; nanosleep(&pause, NULL)) {
		broker_reap();
		log_flush();
		if (now_ms() >= until)
			kill(broker, SIGKILL);
	}
	list_free(root.list, NULL);
	list_free(root.next.list, NULL);
	runners_clear();
	until = now_ms() + LAST_WORDS_MS;
	while ((end_orphans() > 0 || disk_reap()) && now_ms() < until)
		nanosleep(&pause, NULL);
	if (root.begun)
		session_cgroup_clear();
	log_flush();
}

/* The first broker has them. The client of stdio is for nobody else. */
static void
let_go_of_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		log_fatal_errno(-errno, "/dev/null");
	close(null);
}

/* Signals that came meanwhile are pending, and children that ended are zombies.
 * Neither is lost. */
static void
go_on(void)
{
	logs_resume();
	if (root.begun)
		log_never_block();
	if (root.serving.channel >= 0 && root.serving.spoken != SPAWN_VERSION)
		broker_lose(&root.serving, "is of another version");
	reap();
}

static void
save_broker(struct saved *s, struct broker_process *b)
{
	SAVE(s, b->pid);
	saved_fd(s, &b->pidfd);
	saved_fd(s, &b->channel);
	saved_fd(s, &b->events);
	SAVE(s, b->state);
	SAVE(s, b->spoken);
	SAVE(s, b->ping_ms);
	SAVE(s, b->answer_ms);
}

/* A broker that still makes its list is not passed on to the next version. */
void
root_save(struct saved *s)
{
	for (int i = 0;
	     i < PROGRAMS_OPENED - (s->version < 7) - (s->version < 8); i++)
		saved_fd(s, &root.programs.fds[i]);
	saved_fd(s, &root.listener);
	save_broker(s, &root.serving);
	list_save(s, &root.list);
	SAVE(s, root.begun);
	SAVE(s, root.served);
	SAVE(s, root.replaceable);
	SAVE(s, root.restart_ms);
	SAVE(s, root.failures);
	for (size_t i = 0; i < nitems(root.older); i++)
		SAVE(s, root.older[i]);
	if (s->version >= 6)
		SAVE(s, root.ending);
}

static int
begin(int *signals, bool resumed)
{
	size_t n = 0;
	int err;

	if (!root.is_root && !resumed)
		children_each(remember_older, &n);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return -errno;
	if (root.kept < 0)
		kept_make();
	*signals = watch_signals();
	if (*signals < 0)
		return -errno;
	if (resumed)
		go_on();
	if (resumed || root.listener >= 0)
		return 0;
	err = broker_start();
	if (err < 0)
		return err;
	let_go_of_stdio();
	return 0;
}

/* execd sessions: systemd starts the broker in another unit, and gives this
 * program the socket that the broker connects to. */
static bool
take_listener(void)
{
	const char *n = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");

	if (!root.is_root || n == NULL || strcmp(n, "1") != 0 || pid == NULL ||
	    atoi(pid) != (int)getpid())
		return false;
	root.listener = fcntl(CONTROL_FD, F_DUPFD_CLOEXEC, CONTROL_FD + 1);
	close(CONTROL_FD);
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDNAMES");
	return root.listener >= 0 && set_nonblock(root.listener) == 0;
}

int
main(int argc, char **argv)
{
	int signals = -1, err;
	char missing[PATH_MAX];
	bool resumed;

	drop_visibility();
	log_init("execd", LOG_LEVEL_INFO);
	log_name_by_journal();
	root.argv = argv;
	root.is_root = geteuid() == 0;
	programs_self(); /* before it may be renamed */
	if (argc == 2 && strcmp(argv[1], REEXEC_CHECK) == 0)
		return reexec_check();
	resumed = reexec_resume();
	if (!resumed && argc == 2 && strcmp(argv[1], "sessions") == 0 &&
	    !take_listener()) {
		fputs("execd: `execd sessions` is started by systemd as root, "
		      "with one socket\n",
		    stderr);
		return 2;
	}
	if (argc > 1 &&
	    (strcmp(argv[1], "doctor") == 0 || strcmp(argv[1], "ctl") == 0)) {
		broker_child_become();
		return 1;
	}
	err = task_init(missing);
	if (err == 0 && !resumed)
		err = programs_open(&root.programs, missing);
	if (err < 0) {
		log_error(err, "%s", missing);
		return 1;
	}
	descriptors_raise(UINT64_MAX);
	err = begin(&signals, resumed);
	if (err < 0) {
		fprintf(stderr, "execd: starting: %s\n", strerror(-err));
		return 1;
	}
	serve(signals);
	end();
	return root.exit_code < 0 ? 1 : root.exit_code;
}
