/* SPDX-License-Identifier: ISC */
/*
 * capabilities/discoverV2: the skills and plugins of this machine, from
 * CODEX_HOME, ~/.agents and /etc/codex (doc/protocol.md section 13). What
 * cannot be read is left out, and a warning names it and says why.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "directory_walk.h"
#include "files.h"
#include "path_uri.h"
#include "plugin.h"
#include "skill.h"
#include "utf8.h"

#define SYSTEM_SKILLS "/etc/codex/skills"
#define REMOTE_FILE   ".codex-remote-plugin-install.json"

/* The peer's limits. */
#define DEPTH_MAX	  6
#define DIRECTORIES_MAX	  2000 /* of one place */
#define ENTRIES_MAX	  20000
#define FILE_BYTES_MAX	  (1u << 20)
#define PLACE_BYTES_MAX	  (16u << 20) /* files of one place */
#define REMOTE_BYTES_MAX  (16u << 10)
#define PLACES_MAX	  512
#define FOUND_MAX	  2048 /* plugins and skills */
#define ANSWER_BYTES_MAX  (4u << 20)
#define WARNINGS_MAX	  64
#define WARNING_BYTES_MAX 512

static const char no_place[] =
    "some capability locations could not be resolved; discovery may be "
    "incomplete";
static const char no_metadata[] =
    "some capability metadata could not be loaded; discovery may be incomplete";

/* The answer, as it grows. */
struct discovery {
	struct buf plugins_text, skills_text, warnings_text;
	struct json_writer plugins, skills, warnings;
	unsigned found, places, warning_count;
	bool truncated;
};

struct found_file {
	char *path, *uri;
	char *top;   /* of a manifest: URI of the plugin that it belongs to */
	size_t rank; /* of a manifest: its place among plugin_manifests */
};

struct found_files {
	struct found_file *all; /* owned */
	size_t count, cap;
};

/* The skills below a directory have a plugin's name before theirs. */
struct namespace
{
	struct namespace *next;
	char *top, *name;
};

/* A directory that is searched. */
struct place {
	struct discovery *d;
	const char *root;
	const char *id; /* of a place of skills; NULL: it is a plugin */
	size_t bytes;	/* of the files that were read */
	struct found_files skills, manifests;
	struct namespace *namespaces;
};

/* An installed plugin. */
struct installed {
	const char *id, *version;
	const char *remote_id; /* NULL: none */
};

/* --- Warnings ----------------------------------------------------------- */

static void __attribute__((format(printf, 3, 4)))
warn(struct discovery *d, const char *what, const char *fmt, ...)
{
	char detail[WARNING_BYTES_MAX];
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (++d->warning_count > WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	text = d->warning_count < WARNINGS_MAX
		   ? xasprintf("%s: %s", what, detail)
		   : xasprintf("%s: over %d warnings", what, WARNINGS_MAX - 1);
	json_cstring(&d->warnings, text);
}

static void
warn_errno(struct discovery *d, const char *what, const char *path, int err)
{
	warn(d, what, "%s: %s (os error %d)", path, strerror(-err), -err);
}

/* --- Files -------------------------------------------------------------- */

/* Reads up to `max` bytes and one more. Returns 0 or -errno. */
static int
read_some(int fd, struct buf *b, size_t max)
{
	char piece[4096];
	ssize_t n;

	while (b->len <= max) {
		n = read(fd, piece, sizeof(piece));
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		buf_put(b, piece, (size_t)n);
	}
	return -EFBIG;
}

/* Returns 0, -ENOENT if there is no such regular file, or -errno. */
static int
read_file(const char *path, struct buf *b, size_t max)
{
	struct stat st;
	int fd = open_regular(AT_FDCWD, path, O_RDONLY, &st), err;

	if (fd < 0)
		return fd == -ENOTSUP ? -ENOENT : fd;
	err = read_some(fd, b, max);
	close(fd);
	return err;
}

/* Reads text of a place. Returns 0, or -errno; all but -ENOENT is told. */
static int
read_text(struct place *p, const char *path, struct buf *b)
{
	int err;

	buf_init(b, FILE_BYTES_MAX + 8192);
	err = read_file(path, b, FILE_BYTES_MAX);
	if (err == 0 && p->bytes + b->len > PLACE_BYTES_MAX)
		warn(p->d, no_metadata, "%s: over %u bytes are read of %s",
		    path, PLACE_BYTES_MAX, p->root);
	else if (err == 0 && utf8_check(0, b->data, b->len) != 0)
		warn(p->d, no_metadata, "%s: it is not UTF-8", path);
	else if (err == -EFBIG)
		warn(p->d, no_metadata, "%s: over %u bytes", path,
		    FILE_BYTES_MAX);
	else if (err < 0 && err != -ENOENT)
		warn_errno(p->d, no_metadata, path, err);
	else if (err == 0) {
		p->bytes += b->len;
		return 0;
	}
	buf_clear(b);
	return err < 0 ? err : -EFBIG;
}

static void
write_file(struct json_writer *w, const char *path, const struct buf *b)
{
	json_begin(w, '{');
	json_key(w, "path");
	json_path(w, path);
	json_key(w, "contents");
	json_string(w, (const char *)b->data, b->len);
	json_end(w, '}');
}

/* Returns the path without its last `levels` names. The caller owns it. */
static char *
directory_of(const char *path, int levels)
{
	char *top = xstrdup(path), *slash;

	while (levels-- > 0 && (slash = strrchr(top, '/')) != NULL)
		*slash = '\0';
	return top;
}

static char *
uri_of(const char *path)
{
	struct buf b;
	char *uri;

	buf_init(&b, 16 + strlen(path) * 3);
	path_uri_write(&b, path);
	uri = xstrndup((const char *)b.data, b.len);
	buf_clear(&b);
	return uri;
}

/* --- What is below a place ---------------------------------------------- */

static struct found_file *
add_file(struct found_files *f, const char *path)
{
	if (f->count == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 16;
		f->all = xreallocarray(f->all, f->cap, sizeof(f->all[0]));
	}
	f->all[f->count] =
	    (struct found_file){ xstrdup(path), uri_of(path), NULL, 0 };
	return &f->all[f->count++];
}

static void
clear_files(struct found_files *f)
{
	for (size_t i = 0; i < f->count; i++) {
		free(f->all[i].path);
		free(f->all[i].uri);
		free(f->all[i].top);
	}
	free(f->all);
}

static bool
has_end(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);

	return n > m && path[n - m - 1] == '/' && !strcmp(path + n - m, end);
}

static bool
take_entry(void *ctx, const char *path, bool directory)
{
	struct place *p = ctx;

	if (directory)
		return true;
	if (has_end(path, "SKILL.md"))
		add_file(&p->skills, path);
	for (size_t i = 0; i < plugin_manifests_count; i++)
		if (has_end(path, plugin_manifests[i])) {
			_cleanup_free_ char *top = directory_of(path, 2);
			struct found_file *f = add_file(&p->manifests, path);

			f->top = uri_of(top);
			f->rank = i;
		}
	return true;
}

static bool
take_error(void *ctx, const char *path, int err)
{
	struct place *p = ctx;

	warn_errno(p->d, no_metadata, path, err);
	return true;
}

static int
compare_uris(const void *a, const void *b)
{
	const struct found_file *x = a, *y = b;

	return strcmp(x->uri, y->uri);
}

static int
compare_manifests(const void *a, const void *b)
{
	const struct found_file *x = a, *y = b;
	int order = strcmp(x->top, y->top);

	if (order != 0)
		return order;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static void
scan(struct place *p)
{
	static const struct fs_walk_options options = { DEPTH_MAX,
		DIRECTORIES_MAX, ENTRIES_MAX, true, false };
	const struct directory_visitor visitor = { take_entry, take_error, p };

	if (directory_walk(p->root, &options, &visitor))
		warn(p->d, no_metadata, "%s: over %d directories or %d entries",
		    p->root, DIRECTORIES_MAX, ENTRIES_MAX);
	if (p->skills.count > 1)
		qsort(p->skills.all, p->skills.count, sizeof(p->skills.all[0]),
		    compare_uris);
	if (p->manifests.count > 1)
		qsort(p->manifests.all, p->manifests.count,
		    sizeof(p->manifests.all[0]), compare_manifests);
}

/* --- Names of plugins before names of skills ---------------------------- */

/* A manifest that is invalid names nothing. */
static void
add_namespace(struct place *p, const char *path, const struct buf *b)
{
	char *name = plugin_manifest_name((const char *)b->data, b->len);
	struct namespace *n;

	if (name == NULL)
		return;
	n = xcalloc(1, sizeof(*n));
	n->top = directory_of(path, 2);
	n->name = name;
	if (name[0] == '\0') {
		free(name);
		n->name = xstrdup(strrchr(n->top, '/') + 1);
	}
	n->next = p->namespaces;
	p->namespaces = n;
}

/* Reads the manifest of a directory. *path is owned. False: it has none. */
static bool
read_manifest(struct place *p, const char *top, char **path, struct buf *b)
{
	for (size_t i = 0; i < plugin_manifests_count; i++) {
		*path = xasprintf("%s/%s", top, plugin_manifests[i]);
		if (read_text(p, *path, b) == 0)
			return true;
		free(*path);
		*path = NULL;
	}
	return false;
}

/* A place without a manifest may lie in a plugin. */
static void
inherit_namespace(struct place *p)
{
	_cleanup_free_ char *top = xstrdup(p->root), *path = NULL;
	struct buf b;
	char *slash;

	while ((slash = strrchr(top, '/')) != NULL) {
		*slash = '\0';
		if (read_manifest(p, top, &path, &b)) {
			add_namespace(p, path, &b);
			buf_clear(&b);
			return;
		}
	}
}

/* The first manifest of a plugin counts. `seen`: of the place itself. */
static void
find_namespaces(struct place *p, const char *seen)
{
	struct buf b;

	for (size_t i = 0; i < p->manifests.count; i++) {
		const struct found_file *f = &p->manifests.all[i];

		if (seen != NULL && strcmp(seen, f->top) == 0)
			continue;
		seen = f->top;
		if (read_text(p, f->path, &b) == 0) {
			add_namespace(p, f->path, &b);
			buf_clear(&b);
		}
	}
}

/* The namespace that lies nearest around a path; NULL: none. */
static const char *
namespace_of(const struct place *p, const char *path)
{
	const struct namespace *nearest = NULL;

	for (const struct namespace *n = p->namespaces; n; n = n->next) {
		size_t len = strlen(n->top);

		if (strncmp(n->top, path, len) == 0 && path[len] == '/' &&
		    (nearest == NULL || len > strlen(nearest->top)))
			nearest = n;
	}
	return nearest != NULL ? nearest->name : NULL;
}

/* --- Skills ------------------------------------------------------------- */

static void
write_optional(struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	if (text != NULL)
		json_cstring(w, text);
	else
		json_null(w);
}

static void
write_root(struct json_writer *w, const struct place *p)
{
	json_key(w, "discoveryRoot");
	json_begin(w, '{');
	json_key_cstring(w, "id", p->id);
	json_key(w, "path");
	json_path(w, p->root);
	json_end(w, '}');
}

/* How it is shown, what it needs and who may use it. */
static void
write_agents(struct json_writer *w, struct place *p, const char *directory)
{
	_cleanup_free_ char *path =
	    xasprintf("%s/agents/openai.yaml", directory);
	char error[SKILL_ERROR_MAX];
	struct buf b;
	bool there = read_text(p, path, &b) == 0;

	if (skill_agents_write(w,
		!there	    ? NULL
		: b.len > 0 ? (const char *)b.data
			    : "",
		there ? b.len : 0, error) < 0)
		warn(p->d, no_metadata, "%s: %s", path, error);
	if (there)
		buf_clear(&b);
}

/* Returns the name behind the plugin's, or NULL if it is too long. */
static char *
qualify(struct place *p, const struct skill_text *s, const char *path)
{
	const char *namespace = namespace_of(p, path);
	char *name = namespace == NULL ? xstrdup(s->name)
				       : xasprintf("%s:%s", namespace, s->name);

	if (skill_characters(name) <= SKILL_QUALIFIED_MAX)
		return name;
	warn(p->d, no_metadata,
	    "%s: the name has over %d characters with the plugin's", path,
	    SKILL_QUALIFIED_MAX);
	free(name);
	return NULL;
}

static bool
write_skill(struct json_writer *w, struct place *p, const char *path,
    const struct skill_text *s)
{
	_cleanup_free_ char *name = qualify(p, s, path);
	_cleanup_free_ char *directory = directory_of(path, 1);

	if (name == NULL)
		return false;
	json_begin(w, '{');
	write_optional(w, "name", name);
	write_optional(w, "description", s->description);
	write_optional(w, "shortDescription", s->short_description);
	json_key(w, "path");
	json_path(w, path);
	if (p->id != NULL)
		write_root(w, p);
	write_agents(w, p, directory);
	json_end(w, '}');
	return true;
}

/* Returns false if it is none. */
static bool
read_skill(struct json_writer *w, struct place *p, const char *path)
{
	_cleanup_free_ char *directory = directory_of(path, 1);
	struct skill_text s;
	struct buf b;
	bool written = false;

	if (read_text(p, path, &b) < 0)
		return false;
	if (skill_text_parse(&s, (const char *)b.data, b.len,
		strrchr(directory, '/') + 1) < 0)
		warn(p->d, no_metadata, "%s: %s", path, s.error);
	else
		written = write_skill(w, p, path, &s);
	skill_text_clear(&s);
	buf_clear(&b);
	return written;
}

static size_t
answer_bytes(const struct discovery *d)
{
	/* Warnings have room of their own; the rest is braces. */
	return d->plugins_text.len + d->skills_text.len + 256 +
	       WARNINGS_MAX * (WARNING_BYTES_MAX + sizeof(no_metadata));
}

/* Appends what was found unless the answer has no room for it. */
static void
admit(struct discovery *d, struct json_writer *to, const struct buf *text,
    unsigned count)
{
	if (d->found + count > FOUND_MAX || text->failed ||
	    answer_bytes(d) + text->len > ANSWER_BYTES_MAX) {
		d->truncated = true;
		return;
	}
	d->found += count;
	json_raw(to, (const char *)text->data, text->len);
}

static void
find_skills(struct place *p)
{
	struct json_writer w;
	struct buf b;

	for (size_t i = 0; i < p->skills.count; i++) {
		if (p->d->found == FOUND_MAX) {
			p->d->truncated = true;
			return;
		}
		buf_init(&b, ANSWER_BYTES_MAX);
		json_writer_init(&w, &b);
		if (read_skill(&w, p, p->skills.all[i].path))
			admit(p->d, &p->d->skills, &b, 1);
		buf_clear(&b);
	}
}

/* --- Plugins ------------------------------------------------------------ */

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
	warn(p->d, no_metadata,
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
	err = read_text(p, path, &b);
	if (err == 0) {
		write_file(w, path, &b);
		buf_clear(&b);
		return;
	}
	if (declared && err == -ENOENT)
		warn(p->d, no_metadata,
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
	write_file(w, path, &b);
	buf_clear(&b);
}

static void
write_files(struct json_writer *w, struct place *p, const char *path,
    const struct buf *text, const struct plugin_manifest *m)
{
	json_key(w, "files");
	json_begin(w, '{');
	json_key(w, "manifest");
	write_file(w, path, text);
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
			count += read_skill(w, p, p->skills.all[i].path);
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
	write_optional(&w, "id", in->id);
	write_optional(&w, "displayName", name);
	write_optional(&w, "remotePluginId", in->remote_id);
	write_optional(&w, "version", in->version);
	json_key(&w, "root");
	json_path(&w, p->root);
	write_files(&w, p, path, text, m);
	count = write_skills(&w, p);
	json_end(&w, '}');
	admit(p->d, &p->d->plugins, &b, 1 + count);
	buf_clear(&b);
}

static void
take_plugin(struct place *p, const struct installed *in, const char *path,
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
		warn(p->d, no_metadata, "%s: %s", path, error);
	plugin_manifest_clear(&m);
}

/* --- Places ------------------------------------------------------------- */

static void
clear_place(struct place *p)
{
	struct namespace *n;

	while ((n = p->namespaces) != NULL) {
		p->namespaces = n->next;
		free(n->top);
		free(n->name);
		free(n);
	}
	clear_files(&p->skills);
	clear_files(&p->manifests);
}

static void
search(struct place *p, const struct installed *in)
{
	_cleanup_free_ char *path = NULL, *uri = NULL;
	struct buf text;

	scan(p);
	if (read_manifest(p, p->root, &path, &text)) {
		add_namespace(p, path, &text);
		uri = uri_of(p->root);
	} else {
		inherit_namespace(p);
	}
	find_namespaces(p, uri);
	if (in == NULL)
		find_skills(p);
	else if (path != NULL)
		take_plugin(p, in, path, &text);
	else
		warn(p->d, no_metadata, "%s: it has no manifest", p->root);
	if (path != NULL)
		buf_clear(&text);
}

/* A place that is not there has nothing. */
static bool
is_directory(struct discovery *d, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode);
	if (errno != ENOENT)
		warn_errno(d, no_place, path, -errno);
	return false;
}

static void
search_place(struct discovery *d, const char *root, const char *id,
    const struct installed *in)
{
	struct place p = { .d = d, .root = root, .id = id };

	if (d->places == PLACES_MAX) {
		warn(d, no_place, "over %d locations", PLACES_MAX);
		return;
	}
	d->places++;
	if (is_directory(d, root))
		search(&p, in);
	clear_place(&p);
}

/* --- The plugin cache --------------------------------------------------- */

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

	warn_errno(c->d, no_place, path, err);
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
	err = read_file(path, &b, REMOTE_BYTES_MAX);
	if (err == -ENOENT)
		warn(d, no_place, "%s: it is not a file", path);
	else if (err == -EFBIG)
		warn(d, no_place, "%s: over %u bytes", path, REMOTE_BYTES_MAX);
	else if (err < 0)
		warn_errno(d, no_place, path, err);
	else if ((id = plugin_remote_id((const char *)b.data, b.len, error)) ==
		 NULL)
		warn(d, no_place, "%s: %s", path, error);
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
	search_place(c->d, root, NULL, &in);
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

static void
search_cache(struct discovery *d, const char *root)
{
	static const struct fs_walk_options options = { 1, DIRECTORIES_MAX,
		ENTRIES_MAX, true, false };
	struct cache c = { .d = d, .root = root };
	const struct directory_visitor visitor = { take_package,
		take_cache_error, &c };

	if (!is_directory(d, root))
		return;
	if (directory_walk(root, &options, &visitor))
		warn(d, no_place, "%s: over %d directories or %d entries", root,
		    DIRECTORIES_MAX, ENTRIES_MAX);
	if (c.packages.count > 1)
		qsort(c.packages.all, c.packages.count, sizeof(char *),
		    compare_packages);
	for (size_t i = 0; i < c.packages.count; i++)
		search_package(&c, c.packages.all[i]);
	names_free(&c.packages);
}

/* --- The answer --------------------------------------------------------- */

static void
search_all(struct discovery *d, const char *home, const char *codex_home)
{
	_cleanup_free_ char *cache = xasprintf("%s/plugins/cache", codex_home);
	_cleanup_free_ char *own = xasprintf("%s/skills", codex_home);
	_cleanup_free_ char *agents = xasprintf("%s/.agents/skills", home);

	search_cache(d, cache);
	search_place(d, own, "codex-home-skills", NULL);
	if (strcmp(own, agents) != 0)
		search_place(d, agents, "user-agent-skills", NULL);
	if (strcmp(own, SYSTEM_SKILLS) != 0)
		search_place(d, SYSTEM_SKILLS, "system-skills", NULL);
}

static void
begin_list(struct json_writer *w, struct buf *b)
{
	buf_init(b, 2 * ANSWER_BYTES_MAX);
	json_writer_init(w, b);
}

static void
write_list(struct json_writer *w, const char *key, const struct buf *b)
{
	json_key(w, key);
	json_begin(w, '[');
	json_raw(w, (const char *)b->data, b->len);
	json_end(w, ']');
}

static void
write_warnings(struct json_writer *w, const struct discovery *d)
{
	json_key(w, "warnings");
	json_begin(w, '[');
	if (d->truncated)
		json_cstring(w, "capability discovery size limit reached");
	if (d->warnings_text.len > 0)
		json_raw(w, (const char *)d->warnings_text.data,
		    d->warnings_text.len);
	json_end(w, ']');
}

static void
reply_discovery(struct request *r, const struct discovery *d)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	write_list(&w, "plugins", &d->plugins_text);
	write_list(&w, "skills", &d->skills_text);
	write_warnings(&w, d);
	reply_end(r->channel, &w);
}

int
file_capabilities_discover(struct request *r, const struct fs_params *p)
{
	_cleanup_free_ char *codex_home = file_codex_home();
	struct discovery d = { 0 };

	(void)p; /* the peer does not search around cwd either */
	if (codex_home == NULL)
		return reply_error(r->channel, &r->id, RPC_INTERNAL,
		    FILE_NO_CODEX_HOME, getenv("CODEX_HOME"));
	begin_list(&d.plugins, &d.plugins_text);
	begin_list(&d.skills, &d.skills_text);
	begin_list(&d.warnings, &d.warnings_text);
	search_all(&d, file_user_home(), codex_home);
	reply_discovery(r, &d);
	buf_clear(&d.plugins_text);
	buf_clear(&d.skills_text);
	buf_clear(&d.warnings_text);
	return 0;
}
