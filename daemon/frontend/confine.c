/* SPDX-License-Identifier: ISC */
/*
 * Confines the front-end. The order matters: first the file system, while
 * mounting is permitted; then the user, while ids may change; then everything
 * that needs prctl(2); the system-call filter last.
 */
#include "base.h"
#include "frontend_main.h"

#include <linux/prctl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "admission.h"
#include "drop.h"
#include "filter_rows.h"
#include "landlock.h"
#include "userns.h"

/*
 * The system calls that the front-end needs. Any other call kills it, except
 * those that libraries only try, which fail with an error. A new row needs a
 * reason.
 */
static const struct filter_rule rules[] = {
	FILTER_CHANNEL,
	FILTER_MEMORY,
	FILTER_SELF,
	FILTER_TRIED,
	/* bytes of clients */
	ALLOW(read),
	ALLOW(readv),
	ALLOW(writev),
	ALLOW(recvfrom),
	ALLOW(shutdown),
	/* connections; the front-end accepts them and never makes one */
	ALLOW(accept4),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	ALLOW(getsockname),
	ALLOW(getpeername),
	ALLOW_IF(socketpair, 0, FILTER_ALL_BITS, AF_UNIX),
	DENY(socket),
	DENY(connect),
	/* events and time */
	ALLOW(epoll_wait),
	ALLOW(epoll_pwait),
	ALLOW(epoll_ctl),
	ALLOW(clock_nanosleep),
	/* descriptors: their flags, the reserve, the size of a certificate */
	ALLOW(lseek),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_GETFL),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_SETFL),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_GETFD),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_SETFD),
	ALLOW_IF(fcntl, 1, FILTER_ALL_BITS, F_DUPFD_CLOEXEC),
	/* what waits in a client's socket, in both directions */
	ALLOW_IF(ioctl, 1, FILTER_ALL_BITS, FIONREAD),
	ALLOW_IF(ioctl, 1, FILTER_ALL_BITS, SIOCOUTQ),
	/* tried by libraries, but not needed */
	DENY(access),
	DENY(faccessat),
	DENY(prctl),
	DENY(sched_getaffinity),
#if EXECD_SANITIZED
	FILTER_SANITIZER,
#endif
};

/* Descriptors for listeners, TLS, the control channel, the helpers, and
 * connections that are being opened. */
#define OWN_DESCRIPTORS 64

/* A user namespace permits an ordinary user to mount, if the kernel allows
 * it. */
static int
enter_user_namespace(void)
{
	const char *step;
	int err = userns_enter_new(NULL, &step);

	return err == 0 && unshare(CLONE_NEWNS) < 0 ? -errno : err;
}

/* Makes an empty read-only tmpfs the root and detaches the old root, so that no
 * path leads to a file. */
static int
empty_root(void)
{
	if (mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL) < 0)
		return -errno;
	if (mount("none", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		"size=0,nr_inodes=1,mode=555") < 0)
		return -errno;
	if (chdir("/tmp") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	if (mount(NULL, "/", NULL,
		MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV |
		    MS_NOEXEC,
		NULL) < 0)
		return -errno;
	return 0;
}

/* A root that is not a mount (a chroot) cannot be pivoted. Instead, an empty
 * tmpfs that is mounted nowhere becomes the root. */
static int
chroot_to_nothing(void)
{
	_cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC), fd = -1;

	if (fs < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", "1", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC,
	    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
		MOUNT_ATTR_NOEXEC);
	return fd < 0 || fchdir(fd) < 0 || chroot(".") < 0 ? -errno : 0;
}

static void
limit(int resource, const char *name, rlim_t value)
{
	const struct rlimit r = { value, value };

	if (setrlimit(resource, &r) < 0)
		log_fatal_errno(-errno, "limit %s", name);
}

/* The kernel also compares with this limit how many descriptors are on their
 * way between all processes of the user (ETOOMANYREFS, unix(7)). Other programs
 * of an ordinary user have some. */
#define FILES_MIN 1024

/*
 * Sets the limit on descriptors. Each connection needs two: one for the client
 * and one for the session. If the hard limit permits fewer connections than
 * configured, a warning is logged, and further clients are refused with status
 * 503.
 */
static void
limit_files(uint32_t connections)
{
	rlim_t needed = (rlim_t)connections * 2 + OWN_DESCRIPTORS;
	rlim_t wanted = needed > FILES_MIN ? needed : FILES_MIN;
	struct rlimit r = { wanted, wanted };
	uint32_t possible;

	if (setrlimit(RLIMIT_NOFILE, &r) < 0) {
		if (getrlimit(RLIMIT_NOFILE, &r) < 0)
			log_fatal_errno(-errno, "limit NOFILE");
		if (r.rlim_max < needed)
			log_warn(0,
			    "%llu descriptors are allowed, %llu would be "
			    "needed for %u connections",
			    (unsigned long long)r.rlim_max,
			    (unsigned long long)needed, connections);
		limit(RLIMIT_NOFILE, "NOFILE", r.rlim_max);
	}
	possible = r.rlim_max < OWN_DESCRIPTORS + 2
		       ? 1
		       : (uint32_t)((r.rlim_max - OWN_DESCRIPTORS) / 2);
	admission_connections_max =
	    possible < connections ? possible : connections;
}

/* No new processes and no core files. */
static void
limit_resources(const struct frontend_limits *c)
{
	limit_files(c->max_connections);
	limit(RLIMIT_NPROC, "NPROC", 0);
	limit(RLIMIT_CORE, "CORE", 0);
}

static bool
is_stdio(const struct offer *o)
{
	for (uint32_t i = 0; i < o->have; i++)
		if (o->listeners[i].listener.kind == LISTENER_STDIO)
			return true;
	return false;
}

static void
leave_file_system(bool root, struct control_ready *ready)
{
	int err = 0;

	if (root)
		err = unshare(CLONE_NEWNS) < 0 ? -errno : 0;
	else
		err = enter_user_namespace();
	if (err == 0)
		err = empty_root();
	if (err == -EINVAL)
		err = chroot_to_nothing();
	if (err < 0 && root)
		log_fatal_errno(err, "an empty file system");
	if (err < 0)
		log_debug("no empty file system: %s", strerror(-err));
	ready->root_empty = err == 0;
}

void
confine_privileges(const char *user, struct control_ready *ready)
{
	uid_t uid;
	gid_t gid;

	*ready = (struct control_ready){ 0 };
	leave_file_system(user != NULL, ready);
	if (user != NULL || ready->root_empty)
		drop_bounding_set();
	if (user != NULL) {
		drop_parse(user, &uid, &gid);
		drop_to_user(uid, gid, NULL, 0, false);
	} else {
		drop_capabilities();
	}
	ready->user_changed = user != NULL;
	/* Prevents processes of the same user from reading or tracing this
	 * one. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_fatal_errno(-errno, "prctl");
}

void
confine(const struct offer *offer, struct control_ready *ready)
{
	int err;

	limit_resources(&offer->configure.limits);
	/* The output of stdio may be a file, and must still grow. */
	if (!is_stdio(offer))
		limit(RLIMIT_FSIZE, "FSIZE", 0);
	ready->landlock = landlock_deny_all() == 0;
	/* The filter is last, because it would forbid all steps before it. */
	err = filter_load(rules, nitems(rules));
	if (err < 0)
		log_fatal_errno(err, "system call filter");
	ready->seccomp = true;
}
