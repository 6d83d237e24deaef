/* SPDX-License-Identifier: ISC */
/*
 * A file copied from the server: holes, and its name, its mode and its time
 * when it is complete.
 */
#include "copy_item.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HOLE_BYTES 65536 /* zeros that become a hole */

static int
write_piece(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool
is_zero(const char *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

/* Leaves out blocks of zeros, which become holes. keep_facts() sets the final
 * size. */
static int
write_local(void *arg, const void *data, size_t len)
{
	struct copy_item *i = arg;
	size_t at = 0;

	while (at < len) {
		const char *piece = (const char *)data + at;
		size_t n = len - at < HOLE_BYTES ? len - at : HOLE_BYTES;
		int err = 0;

		if (n == HOLE_BYTES && is_zero(piece, n))
			err = lseek(i->fd, (off_t)n, SEEK_CUR) < 0 ? -errno : 0;
		else
			err = write_piece(i->fd, piece, n);
		if (err < 0)
			return err;
		at += n;
	}
	copy_item_count(i, i->counted + len);
	return 0;
}

/* An existing file keeps its mode. A new file gets the mode that cp(1) would
 * give it. */
static mode_t
local_mode(struct copy_item *i)
{
	struct copy *c = i->copy;

	if (i->replaces && !c->preserve)
		return i->kept_mode;
	if (!i->facts.has_mode)
		return 0666 & ~c->umask;
	return facts_mode(c, &i->facts, i->from) &
	       ~(c->preserve ? 0 : c->umask);
}

static int
keep_facts(struct copy_item *i)
{
	struct copy *c = i->copy;

	if (ftruncate(i->fd, (off_t)i->counted) < 0 ||
	    fchmod(i->fd, local_mode(i)) < 0)
		return -errno;
	if (!c->preserve)
		return 0;
	if (!i->facts.has_mode)
		copy_unkept(c, i->from, "the server does not report modes");
	if (!i->facts.has_time || keep_local_time(i->fd, NULL, &i->facts) < 0)
		copy_unkept(c, i->from, "its time of modification");
	return 0;
}

/* Renames the complete file to its final name. */
static int
put_in_place(struct copy_item *i)
{
	int err = keep_facts(i), fd = i->fd;

	if (err < 0)
		return err;
	i->fd = -1;
	/* On a network file system close(2) may report a failed write. */
	if (close(fd) < 0 || rename(i->temporary, i->to) < 0)
		return -errno;
	free(i->temporary);
	i->temporary = NULL;
	return 0;
}

static void
download_done(void *arg, int code, const char *message)
{
	struct copy_item *i = arg;
	_cleanup_free_ char *why = NULL;

	if (code == 0) {
		code = put_in_place(i);
		message = strerror(-code);
	}
	if (code != 0)
		why = xasprintf("to %s: %s", i->to, message);
	copy_item_done(i, code, why);
}

/* Opens a file in the directory of the target, so that rename(2) works. Only
 * the user can read it until it gets its final mode. */
static int
open_temporary(struct copy_item *i)
{
	const char *slash = strrchr(i->to, '/');
	int length = slash ? (int)(slash - i->to) + 1 : 0;
	char handle[32];

	transfer_handle(handle);
	i->temporary =
	    xasprintf("%.*s.%s-%d", length, i->to, handle, (int)getpid());
	i->fd = open(i->temporary,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (i->fd >= 0)
		return 0;
	free(i->temporary);
	i->temporary = NULL;
	return -errno;
}

void
copy_download(
    struct copy *c, const char *from, const char *to, const struct facts *facts)
{
	struct copy_item *i = copy_item_new(c, from, to);
	int err = open_temporary(i);
	_cleanup_free_ char *why = NULL;
	struct stat st;

	i->facts = *facts;
	i->replaces = lstat(to, &st) == 0 && S_ISREG(st.st_mode);
	if (i->replaces)
		i->kept_mode = st.st_mode & 0777;
	if (err < 0) {
		why = xasprintf("to %s: %s", to, strerror(-err));
		if (err == -ENOSPC || err == -EDQUOT)
			c->stop = true;
		copy_item_failed(i, why);
		return;
	}
	i->download = (struct download){ .ctl = c->ctl,
		.path = xstrdup(from),
		.write = write_local,
		.done = download_done,
		.arg = i };
	download_start(&i->download);
}
