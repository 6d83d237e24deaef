/* SPDX-License-Identifier: ISC */
/*
 * A small file system out of one line of text, as a fs_view:
 *
 *	/ws/a/		a directory		/ws/f		a file
 *	/ws/l>a		a link			/ws/.git=gitdir:/x
 *	/ws/s|		something else		/ws/k!	nothing below may
 *						be looked up
 *
 * Parents come by themselves; what would lie below something that is no
 * directory is left out, so that any bytes make a tree.
 */
#pragma once

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "resolve.h"

#define FAKE_FS_MAX  400
#define FAKE_FS_PATH 256

struct fake_node {
	char path[FAKE_FS_PATH];
	char text[FAKE_FS_PATH];
	enum fs_type type;
	bool closed;
};

struct fake_fs {
	struct fake_node nodes[FAKE_FS_MAX];
	size_t count;
	size_t lookups;
	int error; /* of every lookup but that of "/" */
};

static inline struct fake_node *
fake_find(struct fake_fs *fs, const char *path, size_t n)
{
	for (size_t i = 0; i < fs->count; i++)
		if (strlen(fs->nodes[i].path) == n &&
		    memcmp(fs->nodes[i].path, path, n) == 0)
			return &fs->nodes[i];
	return NULL;
}

/* NULL: there is no room, or the parent is no directory. */
static inline struct fake_node *
fake_add(struct fake_fs *fs, const char *path, size_t n, enum fs_type type)
{
	struct fake_node *node = fake_find(fs, path, n);
	size_t up = n;

	if (node != NULL || n >= FAKE_FS_PATH || fs->count == FAKE_FS_MAX)
		return node;
	while (up > 0 && path[up - 1] != '/')
		up--;
	for (size_t i = 1; i < up; i++) {
		const struct fake_node *parent =
		    path[i] == '/' ? fake_find(fs, path, i) : NULL;

		if (path[i] == '/' && parent == NULL)
			parent = fake_add(fs, path, i, FS_DIRECTORY);
		if (path[i] == '/' &&
		    (parent == NULL || parent->type != FS_DIRECTORY))
			return NULL;
	}
	if (fs->count == FAKE_FS_MAX)
		return NULL;
	node = &fs->nodes[fs->count++];
	memset(node, 0, sizeof(*node));
	memcpy(node->path, path, n);
	node->type = type;
	return node;
}

/* "/a/b": no empty, no dot segment. */
static inline bool
fake_is_path(const char *s, size_t n)
{
	size_t at = 0;

	if (n < 2 || s[0] != '/' || memchr(s, '\0', n) != NULL)
		return false;
	while (at < n) {
		size_t len = 0;

		for (at++; at + len < n && s[at + len] != '/'; len++)
			continue;
		if (len == 0 || (len <= 2 && memcmp(s + at, "..", len) == 0))
			return false;
		at += len;
	}
	return true;
}

static inline void
fake_token(struct fake_fs *fs, const char *s, size_t n)
{
	static const char marks[] = ">=/|!";
	enum fs_type type = FS_FILE;
	struct fake_node *node;
	size_t path = 0, text;

	while (path < n && s[path] != '>' && s[path] != '=')
		path++;
	text = path < n ? n - path - 1 : 0;
	if (path < n)
		type = s[path] == '>' ? FS_LINK : FS_FILE;
	else if (n > 1 && strchr(marks, s[n - 1]) != NULL && s[n - 1])
		type = s[--path] == '|' ? FS_OTHER : FS_DIRECTORY;
	if (!fake_is_path(s, path) || text >= FAKE_FS_PATH)
		return;
	node = fake_add(fs, s, path, type);
	if (node == NULL || node->type != type)
		return;
	memcpy(node->text, s + n - text, text);
	node->closed |= text == 0 && s[n - 1] == '!';
}

static inline void
fake_fs_init(struct fake_fs *fs, const char *s, size_t n)
{
	memset(fs, 0, sizeof(*fs));
	fs->nodes[fs->count++] =
	    (struct fake_node){ .path = "/", .type = FS_DIRECTORY };
	for (size_t i = 0, begin = 0; i <= n; i++) {
		if (i < n && s[i] != ' ')
			continue;
		if (i > begin)
			fake_token(fs, s + begin, i - begin);
		begin = i + 1;
	}
}

static inline int
fake_lookup(void *owner, const char *path, struct fs_node *out)
{
	struct fake_fs *fs = owner;
	const struct fake_node *node = fake_find(fs, path, strlen(path));

	fs->lookups++;
	*out = (struct fs_node){ .type = FS_MISSING };
	if (fs->error != 0 && path[1] != '\0')
		return fs->error;
	for (size_t i = 1; path[i] != '\0'; i++) {
		const struct fake_node *up =
		    path[i] == '/' ? fake_find(fs, path, i) : NULL;

		if (up != NULL && up->closed)
			return -EACCES;
		if (up != NULL && up->type != FS_DIRECTORY)
			return -ENOTDIR;
	}
	if (node != NULL)
		*out = (struct fs_node){ node->type, 1,
			(uint64_t)(node - fs->nodes) };
	return 0;
}

static inline int
fake_text(struct fake_fs *fs, const char *path, enum fs_type type, char *text,
    size_t cap)
{
	const struct fake_node *node = fake_find(fs, path, strlen(path));

	if (node == NULL || node->type != type)
		return node == NULL ? -ENOENT : -EINVAL;
	snprintf(text, cap, "%s", node->text);
	return 0;
}

static inline int
fake_read_link(void *owner, const char *path, char *text, size_t cap)
{
	return fake_text(owner, path, FS_LINK, text, cap);
}

static inline int
fake_read_file(void *owner, const char *path, char *text, size_t cap)
{
	return fake_text(owner, path, FS_FILE, text, cap);
}

static inline int
fake_list(void *owner, const char *path, bool directories, fs_visit_fn *visit,
    void *arg)
{
	struct fake_fs *fs = owner;
	const struct fake_node *node = fake_find(fs, path, strlen(path));
	size_t n = strcmp(path, "/") == 0 ? 0 : strlen(path);

	if (node == NULL || node->type != FS_DIRECTORY)
		return node == NULL ? -ENOENT : -ENOTDIR;
	if (node->closed)
		return -EACCES;
	for (size_t i = 1; i < fs->count; i++) {
		const char *p = fs->nodes[i].path;

		if (directories && fs->nodes[i].type != FS_DIRECTORY)
			continue;
		if (strncmp(p, path, n) == 0 && p[n] == '/' &&
		    strchr(p + n + 1, '/') == NULL &&
		    !visit(
			arg, p + n + 1, i % 2 ? FS_MISSING : fs->nodes[i].type))
			break;
	}
	return 0;
}

static inline struct fs_view
fake_view(struct fake_fs *fs)
{
	return (struct fs_view){ fs, fake_lookup, fake_read_link,
		fake_read_file, fake_list };
}
