/* SPDX-License-Identifier: ISC */
/*
 * A plugin: its manifest, the files that it names, and its skills.
 */
#include "discover.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "directory_walk.h"
#include "files.h"
#include "path_uri.h"
#include "plugin.h"

static bool
has_parent(struct slice path)
{
	for (size_t i = 0; i < path.len; i++) {
		size_t n = 0;

		while (i + n < path.len && path.ptr[i + n] != '/' &&
		       path.ptr[i + n] != '\\')
			n++;
		if (n == 2 && path.ptr[i] == '.' && path.ptr[i + 1] == '.')
			return true;
		i += n;
	}
	return false;
}

/* Names that are "." are left out, as in a URI. The caller owns the result. */
static char *
join(const char *root, struct slice below)
{
	_cleanup_free_ char *copy = xstrndup(below.ptr, below.len);
	char *rest = copy, *name, *path = xstrdup(root);

	while ((name = strsep(&rest, "/")) != NULL) {
		char *longer;

		if (name[0] == '\0' || strcmp(name, ".") == 0)
			continue;
		longer = xasprintf("%s/%s", path, name);
		free(path);
		path = longer;
	}
	return path;
}

/* The path that a manifest names; NULL if it names none that counts. */
static char *
declared_path(struct place *p, const char *key, struct slice named)
{
	struct slice below = { NULL, 0 };

	if (named.ptr == NULL)
		return NULL;
	if (named.len > 2 && memcmp(named.ptr, "./", 2) == 0)
		below = (struct slice){ named.ptr + 2, named.len - 2 };
	if (below.len > 0 && memchr(below.ptr, '\0', below.len) == NULL &&
	    !has_parent(below))
		return join(p->root, below);
	discover_warn(p->d, NO_METADATA,
	    "%s: `%s` in the manifest must begin with ./ and stay in the "
	    "plugin",
	    p->root, key);
	return NULL;
}

/* A file that a manifest names, or else the one with the usual name. */
static void
write_config(struct json_writer *w, struct place *p, const char *key,
    struct slice named, const char *usual)
{
	_cleanup_free_ char *path = declared_path(p, key, named);
	bool declared = path != NULL;
	struct buf b;
	int err;

	if (!declared)
		path = xasprintf("%s/%s", p->root, usual);
	err = discover_read_text(p, path, &b);
	if (err == 0) {
		discover_write_file(w, path, &b);
		buf_clear(&b);
		return;
	}
	if (declared && err == -ENOENT)
		discover_warn(p->d, NO_METADATA,
		    "%s: `%s` in the manifest names no file", path, key);
	json_null(w);
}

static void
write_servers(
    struct json_writer *w, const char *path, const struct json_value *servers)
{
	struct json_writer inner;
	struct buf b;

	buf_init(&b, 2 * FILE_BYTES_MAX);
	json_writer_init(&inner, &b);
	plugin_write_json(&inner, servers);
	discover_write_file(w, path, &b);
	buf_clear(&b);
}

static void
write_files(struct json_writer *w, struct place *p, const char *path,
    const struct buf *text, const struct plugin_manifest *m)
{
	json_key(w, "files");
	json_begin(w, '{');
	json_key(w, "manifest");
	discover_write_file(w, path, text);
	json_key(w, "mcpConfig");
	if (m->mcp_servers != NULL)
		write_servers(w, path, m->mcp_servers);
	else
		write_config(w, p, "mcpServers", m->mcp, ".mcp.json");
	json_key(w, "appsConfig");
	write_config(w, p, "apps", m->apps, ".app.json");
	json_end(w, '}');
}

static unsigned
write_skills(struct json_writer *w, struct place *p)
{
	/* The plugin itself counts too. */
	unsigned count = 0, room = FOUND_MAX - p->d->found - 1;

	json_key(w, "skills");
	json_begin(w, '[');
	for (size_t i = 0; i < p->skills.count; i++)
		if (count < room)
			count +=
			    discover_read_skill(w, p, p->skills.all[i].path);
		else
			p->d->truncated = true;
	json_end(w, ']');
	return count;
}

static void
write_plugin(struct place *p, const struct installed *in, const char *path,
    const struct buf *text, const struct plugin_manifest *m)
{
	const char *name = m->name != NULL ? m->name : "";
	struct json_writer w;
	struct buf b;
	unsigned count;

	if (m->display_name != NULL)
		name = m->display_name;
	else if (name[strspn(name, " \t\r\n")] == '\0')
		name = strrchr(p->root, '/') + 1;
	buf_init(&b, ANSWER_BYTES_MAX);
	json_writer_init(&w, &b);
	json_begin(&w, '{');
	discover_write_optional(&w, "id", in->id);
	discover_write_optional(&w, "displayName", name);
	discover_write_optional(&w, "remotePluginId", in->remote_id);
	discover_write_optional(&w, "version", in->version);
	json_key(&w, "root");
	json_path(&w, p->root);
	write_files(&w, p, path, text, m);
	count = write_skills(&w, p);
	json_end(&w, '}');
	discover_admit(p->d, &p->d->plugins, &b, 1 + count);
	buf_clear(&b);
}

void
discover_plugin(struct place *p, const struct installed *in, const char *path,
    const struct buf *text)
{
	char error[PLUGIN_ERROR_MAX];
	struct plugin_manifest m;

	if (p->d->found == FOUND_MAX) {
		p->d->truncated = true;
		return;
	}
	if (plugin_manifest_parse(
		&m, (const char *)text->data, text->len, error) == 0)
		write_plugin(p, in, path, text, &m);
	else
		discover_warn(p->d, NO_METADATA, "%s: %s", path, error);
	plugin_manifest_clear(&m);
}

/* --- the cache ---------------------------------------------------------- */

/*
 * The plugin cache: MARKETPLACE/PLUGIN/VERSION, of which the newest version
 * counts.
 */

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
