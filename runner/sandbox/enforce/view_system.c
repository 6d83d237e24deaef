/* SPDX-License-Identifier: ISC */
/* Makes /dev, /sys and /proc of the view (doc/sandbox.md C3, steps 7 to 9). */
#include "base.h"
#include "view.h"

#include <sys/mount.h>

#include "mounts.h"

const char *const view_device_names[VIEW_DEVICES] = { "null", "zero", "full",
	"random", "urandom", "tty" };

/* --- /dev --------------------------------------------------------------- */

static int
add_device(struct view *v, size_t i)
{
	_cleanup_close_ int target = -1;
	char path[32];
	bool own;

	if (v->devices[i] < 0)
		return 0;
	snprintf(path, sizeof(path), "/dev/%s", view_device_names[i]);
	view_step(v, "%s", path);
	target = view_point(v, path, false, &own);
	if (target < 0)
		return target;
	/* Only these mounts lack nodev, so only here devices can be opened. */
	return mounts_bind(
	    v->devices[i], target, MOUNTS_NO_SUID | MOUNTS_NO_EXEC);
}

static int
add_links(struct view *v, int dev)
{
	static const struct {
		const char *name, *text;
	} links[] = {
		{ "fd", "/proc/self/fd" },
		{ "stdin", "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" },
		{ "stderr", "/proc/self/fd/2" },
		{ "ptmx", "pts/ptmx" },
	};

	for (size_t i = 0; i < nitems(links); i++)
		if (symlinkat(links[i].text, dev, links[i].name) < 0)
			return -errno;
	return 0;
}

/* The host has 4096 terminals for all (kernel.pty.max), and one command could
 * take them. */
static int
mount_terminals(const char *where)
{
	if (mount("devpts", where, "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0620,max=256") < 0)
		return -errno;
	return 0;
}

/* A new devpts: the host's terminals have no name in it. */
static int
add_terminals(struct view *v)
{
	_cleanup_close_ int target = -1;
	char name[32];
	bool own;

	view_step(v, "/dev/pts");
	target = view_point(v, "/dev/pts", true, &own);
	if (target < 0)
		return target;
	snprintf(name, sizeof(name), "self/fd/%d", target);
	return mount_terminals(name);
}

int
view_mount_terminals(void)
{
	return mount_terminals("/dev/pts");
}

/*
 * An empty file costs the kernel about 1 KiB. With at most one file per 4 KiB,
 * files add no more than a quarter to the memory.
 */
#define BYTES_PER_FILE 4096

void
view_memory_options(const struct view *v, char *text, size_t cap)
{
	unsigned long long size = v->shm_bytes;

	/* The kernel's own default is as many files for half of the memory. */
	if (size == 0)
		snprintf(text, cap, "mode=1777");
	else
		snprintf(text, cap, "mode=1777,size=%llu,nr_inodes=%llu", size,
		    size / BYTES_PER_FILE + 1);
}

/* A workspace of the host may be mounted in it. */
static int
add_memory(struct view *v, const char *path, unsigned flags)
{
	_cleanup_close_ int target = -1, fd = -1;
	char options[96];
	bool own;
	int err;

	view_step(v, "%s", path);
	target = view_point(v, path, true, &own);
	if (target < 0)
		return target;
	view_memory_options(v, options, sizeof(options));
	err =
	    view_tmpfs(v, target, NULL, MS_NOSUID | MS_NODEV | flags, options);
	fd = err < 0 ? err : mounts_open(v->root, path);
	return fd < 0 ? fd : view_own(v, fd, false);
}

/* Places the empty files where commands can mount them. */
static int
add_empty(struct view *v)
{
	_cleanup_close_ int target = -1;
	bool own;

	view_step(v, VIEW_EMPTY);
	target = view_point(v, VIEW_EMPTY, true, &own);
	return target < 0 ? target : mounts_bind(v->empty, target, 0);
}

static int
add_dev(struct view *v)
{
	_cleanup_close_ int target = -1, dev = -1;
	bool own;
	int err;

	view_step(v, "/dev");
	target = view_point(v, "/dev", true, &own);
	if (target < 0)
		return target;
	err = view_tmpfs(v, target, "/dev", MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    "mode=0755,size=64k,nr_inodes=1000");
	dev = err < 0 ? err : mounts_open(v->root, "/dev");
	if (dev < 0)
		return dev;
	for (size_t i = 0; i < nitems(v->devices) && err == 0; i++)
		err = add_device(v, i);
	if (err == 0)
		err = add_links(v, dev);
	if (err == 0)
		err = add_terminals(v);
	if (err == 0)
		err = add_memory(v, "/dev/shm", MS_NOEXEC);
	/* Builds execute what they put there. */
	if (err == 0)
		err = add_memory(v, VIEW_TMP, 0);
	return err < 0 ? err : add_empty(v);
}

/* --- /sys --------------------------------------------------------------- */

#define GROUPS "/sys/fs/cgroup"

bool
view_has_group(const struct plan *plan)
{
	return plan->base != PLAN_BASE_EMPTY &&
	       plan_access(plan, GROUPS) != SANDBOX_DENY;
}

void
view_mount_group(void)
{
	mount("cgroup2", GROUPS, "cgroup2",
	    MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

/* Covers these directories of /sys. A missing name is skipped, and so is one
 * that the policy covers itself. */
static int
cover_sys(struct view *v)
{
	static const char *const names[] = { "/sys/kernel/tracing",
		"/sys/kernel/debug", "/sys/firmware", GROUPS, "/sys/power" };

	for (size_t i = 0; i < nitems(names); i++) {
		_cleanup_close_ int target = mounts_open(v->root, names[i]);
		int err;

		view_step(v, "%s", names[i]);
		if (target == -ENOENT ||
		    plan_access(v->plan, names[i]) == SANDBOX_DENY)
			continue;
		err = target < 0 ? target
				 : mounts_bind(v->empty_directory, target, 0);
		if (err < 0)
			return err;
	}
	return 0;
}

static int
add_sys(struct view *v)
{
	_cleanup_close_ int source = -1, target = -1;
	int err = 0;

	view_step(v, "/sys");
	if (v->plan->base == PLAN_BASE_EMPTY)
		return 0;
	target = mounts_open(v->root, "/sys");
	if (target < 0)
		return target == -ENOENT ? 0 : target;
	source = mounts_open(v->old, "/sys");
	if (source < 0)
		return source;
	if (v->plan->base == PLAN_BASE_WRITE)
		err = mounts_bind(source, target,
		    MOUNTS_READONLY | MOUNTS_NO_SUID | MOUNTS_NO_DEV |
			MOUNTS_NO_EXEC);
	return err < 0 ? err : cover_sys(v);
}

bool
view_has_dev(const struct plan *plan)
{
	return plan->base != PLAN_BASE_EMPTY || plan->minimal;
}

int
view_add_system(struct view *v)
{
	int err = 0;

	if (view_has_dev(v->plan))
		err = add_dev(v);
	return err < 0 ? err : add_sys(v);
}

/* --- /proc -------------------------------------------------------------- */

#define PROC_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/*
 * Uses names and mount(2): this /proc was just mounted here and nobody else can
 * put a link into it, and this takes a fifth of the system calls.
 */
static int
cover_file(const char *name)
{
	if (mount(VIEW_EMPTY_FILE, name, NULL, MS_BIND, NULL) < 0)
		return errno == ENOENT ? 0 : -errno;
	return 0;
}

static int
make_readonly(const char *name)
{
	if (mount(name, name, NULL, MS_BIND, NULL) < 0)
		return errno == ENOENT ? 0 : -errno;
	return mount(NULL, name, NULL,
		   MS_REMOUNT | MS_BIND | MS_RDONLY | PROC_FLAGS, NULL) < 0
		   ? -errno
		   : 0;
}

int
view_mount_proc(void)
{
	static const char *const readonly[] = { "/proc/sys", "/proc/irq",
		"/proc/bus", "/proc/fs", "/proc/acpi" };
	static const char *const files[] = { "/proc/sysrq-trigger",
		"/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/key-users",
		"/proc/timer_list", "/proc/sched_debug", "/proc/vmallocinfo",
		"/proc/slabinfo", "/proc/kallsyms", "/proc/kpagecount",
		"/proc/kpageflags", "/proc/kpagecgroup", "/proc/latency_stats",
		"/proc/config.gz" };
	int err = 0;

	if (mount("proc", "/proc", "proc", PROC_FLAGS, "hidepid=2") < 0)
		return -errno;
	for (size_t i = 0; i < nitems(readonly) && err == 0; i++)
		err = make_readonly(readonly[i]);
	for (size_t i = 0; i < nitems(files) && err == 0; i++)
		err = cover_file(files[i]);
	return err;
}

/* --- /etc/resolv.conf --------------------------------------------------- */

#define RESOLVER_FILE "/etc/resolv.conf"
#define ONE_FILE      VIEW_EMPTY_DIRECTORY "/resolv.conf"
#define FILE_FLAGS    (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* On many hosts it is a link; mount(2) follows it as programs do. */
bool
view_has_resolver(void)
{
	return access(RESOLVER_FILE, R_OK) == 0 &&
	       access(VIEW_EMPTY_DIRECTORY, X_OK) == 0;
}

/* "search ." keeps the C library from trying names below the host's domain. */
static int
write_resolver(uint32_t server)
{
	_cleanup_close_ int fd =
	    open(ONE_FILE, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	char text[128];
	ssize_t len = snprintf(text, sizeof(text),
	    "# execd resolves the names that this command may reach.\n"
	    "nameserver %u.%u.%u.%u\nsearch .\n",
	    server >> 24, server >> 16 & 255, server >> 8 & 255, server & 255);
	ssize_t done = fd < 0 ? -1 : write(fd, text, (size_t)len);

	/* A short write sets no errno. */
	return done < 0 ? -errno : done == len ? 0 : -EIO;
}

/* Each command has another server, so the file is in a file system of its own,
 * which is hidden again. */
int
view_mount_resolver(uint32_t server)
{
	int err;

	if (mount("execd", VIEW_EMPTY_DIRECTORY, "tmpfs", FILE_FLAGS,
		"mode=0755,size=4k,nr_inodes=2") < 0)
		return -errno;
	err = write_resolver(server);
	if (err < 0)
		return err;
	if (mount(ONE_FILE, RESOLVER_FILE, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, RESOLVER_FILE, NULL,
		MS_REMOUNT | MS_BIND | MS_RDONLY | FILE_FLAGS, NULL) < 0 ||
	    umount2(VIEW_EMPTY_DIRECTORY, MNT_DETACH) < 0)
		return -errno;
	return 0;
}
