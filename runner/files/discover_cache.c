/* SPDX-License-Identifier: ISC */
/*
 * The plugin cache: MARKETPLACE/PLUGIN/VERSION, of which the newest version
 * counts.
 */
#include "discover.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "directory_walk.h"
#include "files.h"
#include "plugin.h"

#define REMOTE_FILE	 ".codex-remote-plugin-install.json"
#define REMOTE_BYTES_MAX (16u << 10)

struct cache {
	struct discovery *d;
	const char *root;
	struct names packages; /* MARKETPLACE/PLUGIN */
};

static bool
take_package(void *ctx, const char *path, bool directory)
{
	struct cache *c = ctx;
	const char *below = path + strlen(c->root) + 1,
		   *slash = strchr(below, '/');
	_cleanup_free_ char *marketplace = NULL;

	if (!directory || slash == NULL)
		return true;
	marketplace = xstrndup(below, (size_t)(slash - below));
	if (plugin_is_marketplace(marketplace) && plugin_is_name(slash + 1))
		names_add(&c->packages, below);
	return true;
}

static bool
take_cache_error(void *ctx, const char *path, int err)
{
	struct cache *c = ctx;

	discover_warn_errno(c->d, NO_PLACE, path, err);
	return true;
}

/* The newest version, in a directory that is no link. The caller owns it. */
static char *
newest_version(const char *package)
{
	DIR *d = opendir(package);
	char *newest = NULL;
	struct dirent *e;
	struct stat st;

	while (d != NULL && (e = readdir(d)) != NULL) {
		if (!plugin_is_version(e->d_name) ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) <
			0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (newest != NULL &&
		    plugin_compare_versions(e->d_name, newest) <= 0)
			continue;
		free(newest);
		newest = xstrdup(e->d_name);
	}
	if (d != NULL)
		closedir(d);
	return newest;
}

static char *
read_remote_id(struct discovery *d, const char *package)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", package, REMOTE_FILE);
	char error[PLUGIN_ERROR_MAX], *id = NULL;
	struct stat st;
	struct buf b;
	int err;

	if (stat(path, &st) < 0 && errno == ENOENT)
		return NULL;
	buf_init(&b, REMOTE_BYTES_MAX + 8192);
	err = discover_read_file(path, &b, REMOTE_BYTES_MAX);
	if (err == -ENOENT)
		discover_warn(d, NO_PLACE, "%s: it is not a file", path);
	else if (err == -EFBIG)
		discover_warn(
		    d, NO_PLACE, "%s: over %u bytes", path, REMOTE_BYTES_MAX);
	else if (err < 0)
		discover_warn_errno(d, NO_PLACE, path, err);
	else if ((id = plugin_remote_id((const char *)b.data, b.len, error)) ==
		 NULL)
		discover_warn(d, NO_PLACE, "%s: %s", path, error);
	buf_clear(&b);
	return id;
}

static void
search_package(struct cache *c, const char *below)
{
	const char *slash = strchr(below, '/');
	_cleanup_free_ char *package = xasprintf("%s/%s", c->root, below);
	_cleanup_free_ char *id =
	    xasprintf("%s@%.*s", slash + 1, (int)(slash - below), below);
	_cleanup_free_ char *version = newest_version(package);
	_cleanup_free_ char *root = NULL, *remote_id = NULL;
	struct installed in = { .id = id, .version = version };

	if (version == NULL)
		return;
	root = xasprintf("%s/%s", package, version);
	in.remote_id = remote_id = read_remote_id(c->d, package);
	discover_search_place(c->d, root, NULL, &in);
}

static int
compare_packages(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	_cleanup_free_ char *first =
	    xasprintf("%s@%.*s", strchr(x, '/') + 1, (int)strcspn(x, "/"), x);
	_cleanup_free_ char *second =
	    xasprintf("%s@%.*s", strchr(y, '/') + 1, (int)strcspn(y, "/"), y);

	return strcmp(first, second);
}

void
discover_cache(struct discovery *d, const char *root)
{
	static const struct fs_walk_options options = { 1, DIRECTORIES_MAX,
		ENTRIES_MAX, true, false };
	struct cache c = { .d = d, .root = root };
	const struct directory_visitor visitor = { take_package,
		take_cache_error, &c };

	if (!discover_is_directory(d, root))
		return;
	if (directory_walk(root, &options, &visitor))
		discover_warn(d, NO_PLACE,
		    "%s: over %d directories or %d entries", root,
		    DIRECTORIES_MAX, ENTRIES_MAX);
	if (c.packages.count > 1)
		qsort(c.packages.all, c.packages.count, sizeof(char *),
		    compare_packages);
	for (size_t i = 0; i < c.packages.count; i++)
		search_package(&c, c.packages.all[i]);
	names_free(&c.packages);
}
