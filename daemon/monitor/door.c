/*
 * The sandbox door. A child becomes the user but keeps what making a user
 * namespace takes, makes one, and hands over its descriptor.
 */
#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "seqpacket.h"
#include "userns.h"
#include "util.h"

/* It takes a millisecond; nothing in it waits for anybody. */
#define CHILD_MS 5000

static const char *const steps[] = { "changing the user",
	"keeping capabilities", "a new user namespace", "its descriptor" };

/* Capabilities stay permitted over the change of user, and are raised again:
 * where AppArmor or a sysctl forbid ordinary users, they count. */
static int
become(uid_t uid, gid_t gid)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct caps[2];

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ||
	    syscall(SYS_capget, &header, caps) < 0)
		return -errno;
	caps[0].effective = caps[0].permitted;
	caps[1].effective = caps[1].permitted;
	return syscall(SYS_capset, &header, caps) < 0 ? -errno : 0;
}

struct report {
	int32_t err;
	uint32_t step; /* index into steps[] */
};

static void __attribute__((noreturn)) child(uid_t uid, gid_t gid, int channel)
{
	struct report r = { .err = become(uid, gid), .step = 1 };
	const char *step;
	int fd = -1;

	if (r.err == 0) {
		r.step = 2;
		r.err = userns_enter_new(NULL, &step);
	}
	if (r.err == 0) {
		r.step = 3;
		fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
		r.err = fd < 0 ? -errno : 0;
	}
	seqpacket_send(channel, &r, sizeof(r), &fd, fd >= 0);
	_exit(0);
}

static int
receive(int channel, const char **step)
{
	struct pollfd pfd = { .fd = channel, .events = POLLIN };
	int fds[SEQPACKET_FDS_MAX] = { -1 };
	struct report r = { 0 };
	size_t nfds = 0;

	if (poll(&pfd, 1, CHILD_MS) <= 0)
		return -ETIMEDOUT;
	if (seqpacket_recv(channel, &r, sizeof(r), fds, &nfds) !=
		(ssize_t)sizeof(r) ||
	    r.step >= nitems(steps) || nfds > 1)
		return -EIO;
	*step = steps[r.step];
	if (r.err < 0)
		return r.err;
	return nfds == 1 ? fds[0] : -EIO;
}

int
door_open(uid_t uid, gid_t gid, const char **step)
{
	int pair[2], fd, err = seqpacket_pair(pair);
	pid_t pid;

	*step = steps[0];
	if (err < 0)
		return err;
	pid = fork();
	if (pid == 0)
		child(uid, gid, pair[1]);
	close(pair[1]);
	fd = pid < 0 ? -errno : receive(pair[0], step);
	close(pair[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	return fd;
}
