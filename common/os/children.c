/* SPDX-License-Identifier: ISC */
#include "children.h"

#include <dirent.h>

#include "base.h"

/* Field 4 of /proc/PID/stat. It follows the name, which is in parentheses. */
pid_t
children_parent_of(pid_t pid)
{
	char path[64], text[512];
	const char *end;
	int ppid;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_whole(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return -1;
	end = strrchr(text, ')');
	if (end == NULL || sscanf(end + 1, " %*c %d", &ppid) != 1)
		return -1;
	return ppid;
}

/* For kernels without CONFIG_PROC_CHILDREN. Looks at every process of the
 * system. */
static int
scan_proc(void (*visit)(pid_t pid, void *arg), void *arg)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t self = getpid();

	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
		    children_parent_of(atoi(e->d_name)) == self)
			visit(atoi(e->d_name), arg);
	closedir(d);
	return 0;
}

int
children_read(const char *path, void (*visit)(pid_t pid, void *arg), void *arg)
{
	FILE *f = fopen(path, "re");
	int pid;

	if (f == NULL)
		return -errno;
	while (fscanf(f, "%d", &pid) == 1)
		visit(pid, arg);
	fclose(f);
	return 0;
}

int
children_each(void (*visit)(pid_t pid, void *arg), void *arg)
{
	return children_read("/proc/thread-self/children", visit, arg) < 0
		   ? scan_proc(visit, arg)
		   : 0;
}

void
children_reset_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}
