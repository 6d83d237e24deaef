/*
 * The template: loaded and linked once, it becomes a session by fork alone. In
 * root mode it is root, and hears nobody but the monitor; what it could tell
 * its copies is what any of them can read in its own program.
 */
#include "template.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "cgroup.h"
#include "code_pages.h"
#include "control.h"
#include "drop.h"
#include "heap.h"
#include "log.h"
#include "namespaces.h"
#include "seqpacket.h"
#include "util.h"

static gid_t *groups;
static size_t ngroups;

static void
become_user(const struct control_template_start *s)
{
	drop_to_user(s->uid, s->gid, groups, ngroups);
	/* The change of user made it visible where fs.suid_dumpable says so. */
	drop_visibility();
	/* After the drop: a change of credentials clears it. The kernel then
	 * ends the whole namespace when the monitor is gone. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		log_fatal_errno(-errno, "parent death signal");
	if (chdir("/") < 0)
		log_fatal_errno(-errno, "/");
}

static void
prepare_runner(const struct control_template_start *s, const int *fds)
{
	int joins[CGROUP_HIERARCHIES], err;
	const char *step;
	size_t at = 1;

	prctl(PR_SET_NAME, "execd-runner");
	log_init("execd-runner", log_get_level());
	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		joins[i] = s->joins & (1u << i) ? fds[at++] : -1;
	setsid();
	err = cgroup_join(joins, false);
	if (err < 0)
		log_fatal_errno(err, "its control group");
	if (s->isolated && (err = namespaces_enter(&step)) < 0)
		log_fatal_errno(err, "%s", step);
	if (move_fd(fds[0], CONTROL_FD, true) < 0)
		log_fatal_errno(-errno, "the control descriptor");
	/* Nothing of root's is open any more when it is the user's. */
	close_from(CONTROL_FD + 1);
	if (s->isolated)
		become_user(s);
}

static bool
is_start(const struct control_template_start *s, size_t nfds)
{
	size_t joins = 0;

	for (int i = 0; i < CGROUP_HIERARCHIES; i++)
		joins += s->joins >> i & 1;
	return s->joins >> CGROUP_HIERARCHIES == 0 && nfds == 1 + joins;
}

static void
report(pid_t pid)
{
	const struct control_template_started started = {
		.pid = pid > 0 ? (uint32_t)pid : 0,
		.error = pid > 0 ? 0 : (uint32_t)-pid
	};
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, TEMPLATE_REPORT_STARTED, &started);
	err = seqpacket_send(CONTROL_FD, b.data, b.len, NULL, 0);
	buf_clear(&b);
	if (err < 0)
		log_fatal_errno(err, "the monitor");
}

/* One order. True in the runner that it made. */
static bool
take_order(void)
{
	struct control_template_start start;
	static heap_aligned uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n =
	    seqpacket_recv(CONTROL_FD, packet, sizeof(packet), fds, &nfds);
	pid_t pid;

	if (n == -EAGAIN)
		return false;
	if (n == 0)
		_exit(0); /* the monitor is gone, or needs us no more */
	if (n < 0 ||
	    control_get(packet, (size_t)n, TEMPLATE_ORDER_START, &start) < 0 ||
	    !is_start(&start, nfds))
		log_fatal("impossible order from the monitor");
	pid = namespaces_fork(start.isolated, true);
	if (pid == 0) {
		prepare_runner(&start, fds);
		return true;
	}
	while (nfds > 0)
		close(fds[--nfds]);
	report(pid);
	return false;
}

static void
drop_own_variable(void)
{
	char **last = environ;

	while (*last != NULL)
		last++;
	if (last > environ && strcmp(last[-1], CONTROL_TEMPLATE_VARIABLE) == 0)
		last[-1] = NULL;
}

void
template_run(void (*become)(void))
{
	struct pollfd order = { .fd = CONTROL_FD, .events = POLLIN };
	int n = getgroups(0, NULL);

	drop_own_variable();
	groups = xcalloc((size_t)n + 1, sizeof(*groups));
	n = getgroups(n, groups);
	if (n < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		log_fatal_errno(-errno, "template");
	ngroups = (size_t)n;
	prctl(PR_SET_NAME, "execd-template");
	prctl(PR_SET_DUMPABLE, 0);
	code_pages_give_back();
	while (!take_order())
		poll(&order, 1, -1);
	become();
	_exit(0);
}
