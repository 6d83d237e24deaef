/*
 * The masks a session ever made.
 */
#include "mask_list.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mask.h"
#include "util.h"

void
mask_list_init(struct mask_list *l)
{
	*l = (struct mask_list){ .fd = -1 };
}

int
mask_list_add(struct mask_list *l, const char *path)
{
	size_t len = strlen(path) + 1;
	int new = 0;

	if (len > MASK_LIST_MAX_BYTES - l->bytes)
		return -ENOSPC;
	if (l->fd < 0) {
		l->fd = memfd_create("execd masks", MFD_CLOEXEC);
		if (l->fd < 0)
			return -errno;
		new = 1;
	}
	if (pwrite(l->fd, path, len, (off_t)l->bytes) != (ssize_t)len)
		return -EIO;
	l->bytes += len;
	return new;
}

/* A runner that was taken over could have written anything: what is no path,
 * or no mask of this user, is left alone. */
int
mask_list_sweep(int fd)
{
	_cleanup_free_ char *list = xmalloc(MASK_LIST_MAX_BYTES + 1);
	ssize_t n = pread(fd, list, MASK_LIST_MAX_BYTES, 0);

	if (n < 0)
		return -errno;
	list[n] = '\0';
	for (const char *path = list; path < list + n; path += strlen(path) + 1)
		if (path[0] == '/')
			mask_sweep(path);
	return 0;
}
