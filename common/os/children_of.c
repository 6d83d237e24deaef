/* SPDX-License-Identifier: ISC */
/* Separate, because root has no use for it. */
#include "base.h"
#include "children.h"

#include <dirent.h>

int
children_of(pid_t pid, void (*visit)(pid_t pid, void *arg), void *arg)
{
	char tasks[64] = "/proc/self/task", path[128];
	struct dirent *e;
	DIR *d;
	int err = 0;

	if (pid != 0)
		snprintf(tasks, sizeof(tasks), "/proc/%d/task", (int)pid);
	d = opendir(tasks);
	if (d == NULL)
		return -errno;
	while (err == 0 && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(
		    path, sizeof(path), "%s/%.20s/children", tasks, e->d_name);
		err = children_read(path, visit, arg);
	}
	closedir(d);
	return err;
}
