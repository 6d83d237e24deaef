/* SPDX-License-Identifier: ISC */
/*
 * Watches the memory of a command's processes.
 *
 * A look costs one system call per process while nobody runs, and a few more
 * while somebody does. The pause between looks shrinks as the processes come
 * near the limit, and grows while all of them sleep.
 *
 * Sources: proc(5), fsopen(2), kcmp(2), clock_getcpuclockid(3).
 */
#include "memory_watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "heap.h"
#include "util.h"

/*
 * What all processes together are taken to write in a millisecond. With several
 * processors 1 to 4 GiB/s were measured.
 */
#define BYTES_PER_MS (8u << 20)

#define PAUSE_MIN_MS 5
#define PAUSE_MAX_MS 1000

/* A look that takes long is followed by a pause that is so many times longer.
 */
#define PAUSE_PER_LOOK 9

/* --- /proc -------------------------------------------------------------- */

/* With "subset=pid" there is nothing of the system in it. Linux 5.8. */
static int
mount_processes(void)
{
	_cleanup_close_ int fs =
	    (int)syscall(SYS_fsopen, "proc", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "subset", "pid", 0) <
		0 ||
	    syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
	    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
		MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

int
memory_watch_begin(struct memory_watch *w, uint64_t limit_bytes)
{
	_cleanup_close_ int fd = mount_processes();

	if (fd < 0)
		return fd;
	if (fchdir(fd) < 0 || chroot(".") < 0)
		return -errno;
	*w = (struct memory_watch){ .limit_bytes = limit_bytes,
		.pause_ms = memory_watch_pause(0, limit_bytes) };
	w->proc = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return w->proc < 0 ? -errno : 0;
}

/* Does all that an init does, because a container may refuse any part of it,
 * for example chroot(2). */
bool
memory_watch_is_possible(void)
{
	struct memory_watch w;
	int status;
	pid_t pid;

	/* Only in its own pid namespace may it mount a /proc. */
	pid = (pid_t)syscall(
	    SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		_exit(memory_watch_begin(&w, 1) < 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/*
 * Calls visit() for each number that is a name in the directory, until it
 * returns false.
 */
static void
each_number(int directory, bool (*visit)(pid_t number, void *arg), void *arg)
{
	_Alignas(struct dirent64) char names[2048];
	ssize_t n;

	while (
	    (n = syscall(SYS_getdents64, directory, names, sizeof(names))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const void *)(names + at);
			pid_t number = atoi(d->d_name);

			if (number > 0 && !visit(number, arg))
				return;
			at += d->d_reclen;
		}
}

/* --- files of /proc ----------------------------------------------------- */

static bool
add_line(const char *line, const char *const *names, uint64_t *sum)
{
	for (; *names != NULL; names++) {
		size_t n = strlen(*names);

		if (strncmp(line, *names, n) != 0 || line[n] != ':')
			continue;
		*sum += strtoull(line + n + 1, NULL, 10);
		return true;
	}
	return false;
}

bool
memory_watch_sum(int fd, const char *const *names, uint64_t *sum)
{
	static heap_aligned char text[2048];
	bool found = false;
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		text[have] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			*end = '\0';
			found |= add_line(line, names, sum);
		}
		have -= (size_t)(line - text);
		/* No line that counts is so long. One of all groups may be. */
		if (have == sizeof(text) - 1)
			have = 0;
		memmove(text, line, have);
	}
	return found;
}

/* What to read of a process. */
struct question {
	pid_t pid;
	const char *file;
	const char *const *names;
	uint64_t sum;
	bool found;
};

static bool
ask_thread(pid_t thread, void *arg)
{
	struct question *q = arg;
	char path[64];
	_cleanup_close_ int fd = -1;

	snprintf(
	    path, sizeof(path), "%d/task/%d/%s", q->pid, (int)thread, q->file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	q->found = fd >= 0 && memory_watch_sum(fd, q->names, &q->sum);
	return !q->found;
}

/*
 * Usually the first thread knows. If it has ended before the others, it has no
 * memory any more, and they have.
 */
static bool
ask(struct question *q)
{
	char path[32];
	_cleanup_close_ int threads = -1;

	if (!ask_thread(q->pid, q))
		return true;
	snprintf(path, sizeof(path), "%d/task", (int)q->pid);
	threads = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (threads >= 0)
		each_number(threads, ask_thread, q);
	return q->found;
}

/* --- what processes have ------------------------------------------------ */

/* Counts as a whole what the process shares with others. */
static bool
add_resident(pid_t pid, void *arg)
{
	static const char *const names[] = { "RssAnon", "RssShmem", "VmSwap",
		NULL };
	struct question q = { pid, "status", names, 0, false };
	uint64_t *kib = arg;

	if (pid > 1 && ask(&q))
		*kib += q.sum;
	return true;
}

/* After vfork(2) a child has the memory of its parent until it executes. */
static bool
has_memory_of_parent(pid_t pid)
{
	static const char *const names[] = { "PPid", NULL };
	struct question q = { pid, "status", names, 0, false };

	return ask(&q) && q.sum > 1 &&
	       syscall(SYS_kcmp, pid, (pid_t)q.sum, KCMP_VM, 0, 0) == 0;
}

/*
 * Counts a part of what the process shares with others. This takes long: the
 * kernel looks at each page. A process that hides its memory is counted as
 * above.
 */
static bool
add_share(pid_t pid, void *arg)
{
	static const char *const names[] = { "Pss_Anon", "Pss_Shmem", "SwapPss",
		NULL };
	struct question q = { pid, "smaps_rollup", names, 0, false };
	uint64_t *kib = arg;

	if (pid <= 1 || has_memory_of_parent(pid))
		return true;
	if (!ask(&q))
		return add_resident(pid, arg);
	*kib += q.sum;
	return true;
}

static uint64_t
count(const struct memory_watch *w, bool (*add)(pid_t pid, void *arg))
{
	uint64_t kib = 0;

	lseek(w->proc, 0, SEEK_SET);
	each_number(w->proc, add, &kib);
	return kib << 10;
}

/*
 * The second count is made because of processes that take each other's place
 * during the first one.
 */
static uint64_t
measure(const struct memory_watch *w)
{
	uint64_t bytes = count(w, add_resident);

	for (int i = 0; i < 2 && bytes > w->limit_bytes; i++)
		bytes = count(w, add_share);
	return bytes;
}

/* --- when to look ------------------------------------------------------- */

/* clock_getcpuclockid(3) would ask the kernel whether there is this clock. */
#define CLOCK_OF(pid) ((clockid_t)(~(unsigned)(pid) << 3 | 2))

static bool
add_activity(pid_t pid, void *arg)
{
	struct memory_watch *w = arg;
	struct timespec t;

	if (pid <= 1)
		return true;
	w->pids = w->pids * 31 + (uint64_t)pid;
	if (syscall(SYS_clock_gettime, CLOCK_OF(pid), &t) == 0)
		w->cpu_ns +=
		    (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return true;
}

/* Tells whether anybody has run since the latest look. */
static bool
is_active(struct memory_watch *w)
{
	uint64_t cpu_ns = w->cpu_ns, pids = w->pids;

	w->cpu_ns = w->pids = 0;
	lseek(w->proc, 0, SEEK_SET);
	each_number(w->proc, add_activity, w);
	return cpu_ns != w->cpu_ns || pids != w->pids;
}

static unsigned
at_most(uint64_t ms)
{
	return ms < PAUSE_MAX_MS ? (unsigned)ms : PAUSE_MAX_MS;
}

unsigned
memory_watch_pause(uint64_t bytes, uint64_t limit_bytes)
{
	uint64_t left = bytes < limit_bytes ? limit_bytes - bytes : 0;
	uint64_t ms = left / BYTES_PER_MS;

	return ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : at_most(ms);
}

bool
memory_watch_look(struct memory_watch *w)
{
	int64_t began = now_ms(), took;
	uint64_t bytes;

	if (!is_active(w)) {
		w->pause_ms = at_most(2 * (uint64_t)w->pause_ms);
		return false;
	}
	bytes = measure(w);
	took = now_ms() - began;
	w->pause_ms = memory_watch_pause(bytes, w->limit_bytes);
	if (w->pause_ms < took * PAUSE_PER_LOOK)
		w->pause_ms = at_most((uint64_t)took * PAUSE_PER_LOOK);
	return bytes > w->limit_bytes;
}
