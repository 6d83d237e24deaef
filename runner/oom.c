/*
 * Kills for want of memory: the line "oom_kill N" of memory.events (version
 * 2) or memory.oom_control (version 1), in a file that stays open.
 */
#include "oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

static int count_fd = -1;

/* `line` as of /proc/self/cgroup: NUMBER:CONTROLLERS:PATH. -1: not it. */
static int
open_count(char *line)
{
	char *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	_cleanup_free_ char *file = NULL;

	if (path == NULL)
		return -1;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (strcmp(controllers, ":memory") == 0)
		file = xasprintf(
		    "/sys/fs/cgroup/memory%s/memory.oom_control", path);
	else if (strcmp(controllers, ":") == 0)
		file = xasprintf("/sys/fs/cgroup%s/memory.events", path);
	else
		return -1;
	return open(file, O_RDONLY | O_CLOEXEC);
}

void
oom_init(void)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[4096];

	if (f == NULL)
		return;
	while (count_fd < 0 && fgets(line, sizeof(line), f) != NULL)
		count_fd = open_count(line);
	fclose(f);
}

uint64_t
oom_kills(void)
{
	char text[512];
	unsigned long long n;
	const char *at;
	ssize_t len;

	if (count_fd < 0)
		return 0;
	len = pread(count_fd, text, sizeof(text) - 1, 0);
	if (len <= 0)
		return 0;
	text[len] = '\0';
	at = strstr(text, "oom_kill ");
	return at != NULL && sscanf(at, "oom_kill %llu", &n) == 1 ? n : 0;
}
