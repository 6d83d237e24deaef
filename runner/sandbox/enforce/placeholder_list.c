/* SPDX-License-Identifier: ISC */
/* Reads, extends and cleans up the list of placeholders. */
#include "placeholder_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "util.h"

/* The list as it is on the disk, with a NUL after its end. */
struct content {
	char *text; /* owned */
	size_t len;
	bool orphan;
	struct siphash_key key;
};

void
placeholder_list_init(struct placeholder_list *l, int fd)
{
	*l = (struct placeholder_list){ .fd = fd };
}

static int
parse_header(struct content *c)
{
	const char *p = c->text;

	c->orphan = p[0] == PLACEHOLDER_LIST_ORPHAN[0];
	return (c->orphan || p[0] == PLACEHOLDER_LIST_LIVE[0]) &&
		       strlen(p) == PLACEHOLDER_LIST_HEADER - 1 &&
		       sscanf(p + 1, "%16" SCNx64 "%16" SCNx64, &c->key.k0,
			   &c->key.k1) == 2
		   ? 0
		   : -EBADMSG;
}

/* Reads at most the permitted size. The caller frees c->text in any case. */
static int
read_list(int fd, struct content *c)
{
	ssize_t n;

	*c =
	    (struct content){ .text = xmalloc(PLACEHOLDER_LIST_MAX_BYTES + 1) };
	n = pread(fd, c->text, PLACEHOLDER_LIST_MAX_BYTES, 0);
	if (n < 0)
		return -errno;
	c->len = (size_t)n;
	c->text[c->len] = '\0';
	return parse_header(c);
}

static const char *
next_path(const struct content *c, const char *path)
{
	path += strlen(path) + 1;
	return path < c->text + c->len ? path : NULL;
}

static bool
has(const struct content *c, const char *wanted)
{
	for (const char *path = next_path(c, c->text); path != NULL;
	     path = next_path(c, path))
		if (strcmp(path, wanted) == 0)
			return true;
	return false;
}

/* The list must be on the disk before there is anything to clean up. */
static int
append(int fd, const struct buf *b)
{
	if (b->len == 0)
		return 0;
	if (write(fd, b->data, b->len) != (ssize_t)b->len)
		return errno != 0 ? -errno : -EIO;
	return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

int
placeholder_list_add(struct placeholder_list *l,
    const struct placeholder *placeholders, size_t n)
{
	struct content c;
	struct buf b;
	int err = read_list(l->fd, &c);

	buf_init(&b, PLACEHOLDER_LIST_MAX_BYTES);
	for (size_t i = 0; i < n && err == 0; i++) {
		size_t len = strlen(placeholders[i].path) + 1;

		if (has(&c, placeholders[i].path))
			continue;
		if (c.len + b.len + len > PLACEHOLDER_LIST_MAX_BYTES)
			err = -ENOSPC;
		else
			buf_put(&b, placeholders[i].path, len);
	}
	errno = 0;
	if (err == 0)
		err = append(l->fd, &b);
	if (err == 0)
		l->key = c.key;
	buf_clear(&b);
	free(c.text);
	return err;
}

/*
 * A compromised runner could have written anything: what is not a path, or not
 * a placeholder of this list and this user, is left alone. The list of a server
 * that is gone is emptied afterwards, because nobody reads it again.
 */
int
placeholder_list_cleanup(int fd)
{
	struct content c;
	int err = read_list(fd, &c);

	for (const char *path = err < 0 ? NULL : next_path(&c, c.text);
	     path != NULL; path = next_path(&c, path))
		if (path[0] == '/')
			placeholder_cleanup(path, &c.key, c.orphan);
	if (err == 0 && c.orphan && ftruncate(fd, 0) < 0)
		err = -errno;
	free(c.text);
	return err;
}
