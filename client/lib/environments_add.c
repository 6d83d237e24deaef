/* SPDX-License-Identifier: ISC */
/*
 * Adds an entry to the file of environments. A new file replaces the old one by
 * rename(2), so nobody ever reads a partial file.
 */
#include "execd-client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "buf.h"
#include "environments.h"

#define FILE_MAX (1u << 20) /* bytes */

static void
look_for(void *arg, const struct execd_environment *e, bool is_default)
{
	const char **name = arg;

	if (*name != NULL && strcmp(e->name, *name) == 0)
		*name = NULL;
}

static int
check_new(const struct execd_environment *e, char **error)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				      "._-";
	const char *name = e->name;
	int err;

	if (name[0] == '\0' || strlen(name) > 40 ||
	    name[strspn(name, allowed)] != '\0') {
		*error = xasprintf("environment `%s': a name is 1 to 40 "
				   "letters, digits, `.', `_' and `-'",
		    name);
		return -EINVAL;
	}
	err = execd_environment_each(look_for, &name, error);
	if (err == 0 && name == NULL) {
		*error = xasprintf("environment `%s' already exists", e->name);
		err = -EEXIST;
	}
	return err;
}

/* Copies the old text. Leaves out its default if there will be a new one. */
static int
copy_old(struct buf *b, const char *path, bool drop_default)
{
	FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (f == NULL)
		return errno == ENOENT ? 0 : -errno;
	while ((n = getline(&line, &cap, f)) > 0) {
		if (drop_default && strncmp(line, "default", 7) == 0 &&
		    line[7 + strspn(line + 7, " \t")] == '=')
			continue;
		buf_put(b, line, (size_t)n);
		if (line[n - 1] != '\n')
			buf_puts(b, "\n");
	}
	fclose(f);
	return b->failed ? -EFBIG : 0;
}

static void
put(struct buf *b, const char *key, const char *value)
{
	if (value == NULL)
		return;
	buf_puts(b, key);
	buf_puts(b, " = ");
	buf_puts(b, value);
	buf_puts(b, "\n");
}

static int
make_directories(const char *path)
{
	_cleanup_free_ char *copy = xstrdup(path);

	for (char *p = copy + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

static int
replace_file(const char *path, const struct buf *b)
{
	_cleanup_free_ char *name = xasprintf("%s.XXXXXX", path);
	_cleanup_close_ int fd = mkostemp(name, O_CLOEXEC);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, b->data, b->len);
	if (n != (ssize_t)b->len)
		err = n < 0 ? -errno : -ENOSPC;
	else if (fsync(fd) < 0 || rename(name, path) < 0)
		err = -errno;
	if (err < 0)
		unlink(name);
	return err;
}

int
execd_environment_add(const struct execd_environment *e, const char *token_file,
    bool make_default, char **error)
{
	_cleanup_free_ char *path = environments_path();
	struct buf b;
	int err;

	*error = NULL;
	if (path == NULL) {
		*error = xstrdup("neither EXECD_ENVIRONMENTS nor HOME is set");
		return -ENOENT;
	}
	err = check_new(e, error);
	if (err < 0)
		return err;
	buf_init(&b, FILE_MAX);
	if (make_default)
		put(&b, "default", e->name);
	err = copy_old(&b, path, make_default);
	buf_puts(&b, "\n[");
	buf_puts(&b, e->name);
	buf_puts(&b, "]\n");
	put(&b, "url", e->url);
	put(&b, "token-file", token_file);
	put(&b, "ca", e->ca_file);
	put(&b, "certificate", e->certificate_file);
	put(&b, "certificate-key", e->key_file);
	if (err == 0)
		err = make_directories(path);
	if (err == 0)
		err = replace_file(path, &b);
	buf_clear(&b);
	if (err < 0)
		*error = xasprintf("%s: %s", path, strerror(-err));
	return err;
}
