/* SPDX-License-Identifier: ISC */
/* A plugin: its name, its version, its manifest, the files that it names, and
 * its skills. */
#include "base.h"
#include "discover.h"

#include "files.h"
#include "path_uri.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS	"0123456789"

const char *const plugin_manifests[] = { ".codex-plugin/plugin.json",
	".claude-plugin/plugin.json", ".cursor-plugin/plugin.json" };
const size_t plugin_manifests_count = nitems(plugin_manifests);

static bool
has_only(const char *name, const char *set)
{
	return name[0] != '\0' && strspn(name, set) == strlen(name);
}

/* Names of directories of a plugin cache: MARKETPLACE/PLUGIN/VERSION. */
static bool
plugin_is_marketplace(const char *name)
{
	return has_only(name, LETTERS DIGITS "-_");
}

static bool
plugin_is_name(const char *name)
{
	return has_only(name, LETTERS DIGITS "-_.") && name[0] != '.' &&
	       name[strlen(name) - 1] != '.' && strstr(name, "..") == NULL;
}

static bool
plugin_is_version(const char *name)
{
	return has_only(name, LETTERS DIGITS "-_.+") &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* --- Semantic versions -------------------------------------------------- */

struct semantic {
	uint64_t numbers[3];
	struct slice before, build; /* what is behind '-' and '+' */
};

static bool
is_number(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < '0' || s.ptr[i] > '9')
			return false;
	return s.len > 0;
}

/* Takes the part before the next dot. Returns false if there is none. */
static bool
take_part(struct slice *rest, struct slice *part)
{
	const char *dot;

	if (rest->ptr == NULL)
		return false;
	dot = memchr(rest->ptr, '.', rest->len);
	part->ptr = rest->ptr;
	part->len = dot != NULL ? (size_t)(dot - rest->ptr) : rest->len;
	rest->ptr = dot != NULL ? dot + 1 : NULL;
	rest->len -= part->len + (dot != NULL);
	return true;
}

/* Dotted parts; a number among them has no zero before it. */
static bool
is_dotted(struct slice s, bool zeros)
{
	struct slice part;

	while (take_part(&s, &part)) {
		if (part.len == 0)
			return false;
		for (size_t i = 0; i < part.len; i++)
			if (strchr(LETTERS DIGITS "-", part.ptr[i]) == NULL)
				return false;
		if (!zeros && part.len > 1 && part.ptr[0] == '0' &&
		    is_number(part))
			return false;
	}
	return true;
}

static bool
take_number(const char **p, uint64_t *number)
{
	size_t n = strspn(*p, DIGITS);

	if (n == 0 || n > 19 || (n > 1 && **p == '0'))
		return false;
	*number = strtoull(*p, NULL, 10);
	*p += n;
	return true;
}

static bool
parse_semantic(struct semantic *v, const char *p)
{
	*v = (struct semantic){ 0 };
	for (int i = 0; i < 3; i++)
		if ((i > 0 && *p++ != '.') || !take_number(&p, &v->numbers[i]))
			return false;
	if (*p == '-') {
		v->before = (struct slice){ p + 1, strcspn(p + 1, "+") };
		p += 1 + v->before.len;
	}
	if (*p == '+') {
		v->build = (struct slice){ p + 1, strlen(p + 1) };
		p += 1 + v->build.len;
	}
	return *p == '\0' && is_dotted(v->before, false) &&
	       is_dotted(v->build, true);
}

static int
compare_bytes(struct slice a, struct slice b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int order = n > 0 ? memcmp(a.ptr, b.ptr, n) : 0;

	return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static struct slice
without_zeros(struct slice s)
{
	while (s.len > 1 && *s.ptr == '0')
		s.ptr++, s.len--;
	return s;
}

static int
compare_numbers(struct slice a, struct slice b)
{
	struct slice x = without_zeros(a), y = without_zeros(b);

	if (x.len != y.len)
		return x.len < y.len ? -1 : 1;
	return compare_bytes(x, y) ? compare_bytes(x, y)
				   : (a.len > b.len) - (a.len < b.len);
}

static int
compare_parts(struct slice a, struct slice b)
{
	bool x = is_number(a), y = is_number(b);

	if (x != y)
		return x ? -1 : 1; /* numbers are below words */
	return x ? compare_numbers(a, b) : compare_bytes(a, b);
}

static int
compare_dotted(struct slice a, struct slice b)
{
	struct slice x, y;
	int order = 0;

	while (order == 0) {
		bool more_a = take_part(&a, &x), more_b = take_part(&b, &y);

		if (!more_a || !more_b)
			return (int)more_a - (int)more_b;
		order = compare_parts(x, y);
	}
	return order;
}

static int
compare_semantic(const struct semantic *a, const struct semantic *b)
{
	int order;

	for (int i = 0; i < 3; i++)
		if (a->numbers[i] != b->numbers[i])
			return a->numbers[i] < b->numbers[i] ? -1 : 1;
	/* What comes before a version is below it. */
	if ((a->before.ptr == NULL) != (b->before.ptr == NULL))
		return a->before.ptr == NULL ? 1 : -1;
	order = compare_dotted(a->before, b->before);
	return order != 0 ? order : compare_dotted(a->build, b->build);
}

/*
 * Orders two versions: as semantic versions if both are, otherwise by their
 * bytes. "local" is above all.
 */
static int
plugin_compare_versions(const char *a, const char *b)
{
	bool local_a = strcmp(a, "local") == 0, local_b = !strcmp(b, "local");
	struct semantic x, y;

	if (local_a || local_b)
		return (int)local_a - (int)local_b;
	if (parse_semantic(&x, a) && parse_semantic(&y, b))
		return compare_semantic(&x, &y);
	return strcmp(a, b);
}

/* --- Manifests ---------------------------------------------------------- */

/* Returns a string as text; NULL if it is none, or has a NUL. */
static char *
string_of(const struct json_value *v)
{
	if (v == NULL || v->type != JSON_STRING ||
	    memchr(v->text.ptr, '\0', v->text.len) != NULL)
		return NULL;
	return xstrndup(v->text.ptr, v->text.len);
}

static bool
is_something(const struct json_value *v)
{
	return v != NULL && v->type != JSON_NULL;
}

/* Blanks around it do not count. Returns NULL if nothing else is there. */
static char *
trimmed(char *text)
{
	size_t from = strspn(text, " \t\r\n\v\f"), to = strlen(text);
	char *found = NULL;

	while (to > from && strchr(" \t\r\n\v\f", text[to - 1]) != NULL)
		to--;
	if (to > from)
		found = xstrndup(text + from, to - from);
	free(text);
	return found;
}

static const char *
take_display_name(struct plugin_manifest *m, const struct json_value *interface)
{
	const struct json_value *v;
	char *name;

	if (!is_something(interface))
		return NULL;
	if (interface->type != JSON_OBJECT)
		return "`interface` is no object";
	v = json_get(interface, "displayName");
	name = string_of(v);
	if (name == NULL)
		return is_something(v) ? "`displayName` is no string" : NULL;
	m->display_name = trimmed(name);
	return NULL;
}

static const char *
take_paths(struct plugin_manifest *m, const struct json_value *root)
{
	const struct json_value *apps = json_get(root, "apps"),
				*mcp = json_get(root, "mcpServers");

	if (mcp != NULL && mcp->type == JSON_STRING)
		m->mcp = mcp->text;
	else if (mcp != NULL && mcp->type == JSON_OBJECT)
		m->mcp_servers = mcp;
	if (is_something(apps) && apps->type != JSON_STRING)
		return "`apps` is no string";
	if (is_something(apps))
		m->apps = apps->text;
	return NULL;
}

static const char *
take_manifest(struct plugin_manifest *m, const struct json_value *root)
{
	const struct json_value *name;
	const char *error, *wrong_path;

	if (root->type != JSON_OBJECT)
		return "it is no object";
	wrong_path = take_paths(m, root);
	name = json_get(root, "name");
	m->name = string_of(name);
	if (name != NULL && m->name == NULL)
		return "`name` is no string";
	error = take_display_name(m, json_get(root, "interface"));
	return error != NULL ? error : wrong_path;
}

int
plugin_manifest_parse(struct plugin_manifest *m, const char *text, size_t len,
    char error[PLUGIN_ERROR_MAX])
{
	const char *wrong;

	/* What is right of an invalid one stays known. */
	*m = (struct plugin_manifest){ 0 };
	if (json_parse(&m->doc, text, len) < 0)
		wrong = m->doc.error;
	else
		wrong = take_manifest(m, m->doc.root);
	if (wrong == NULL)
		return 0;
	snprintf(error, PLUGIN_ERROR_MAX, "%s", wrong);
	return -EBADMSG;
}

void
plugin_manifest_clear(struct plugin_manifest *m)
{
	json_clear(&m->doc);
	free(m->name);
	free(m->display_name);
}

char *
plugin_manifest_name(const char *text, size_t len)
{
	const struct json_value *v = NULL;
	struct json_doc doc;
	char *name = NULL;

	if (json_parse(&doc, text, len) == 0 && doc.root->type == JSON_OBJECT) {
		v = json_get(doc.root, "name");
		name = v == NULL ? xstrdup("") : string_of(v);
	}
	json_clear(&doc);
	if (name != NULL && name[strspn(name, " \t\r\n\v\f")] == '\0')
		name[0] = '\0';
	return name;
}

/* --- Where it is from --------------------------------------------------- */

static const char *
take_remote_id(const struct json_value *root, char **id)
{
	uint64_t version;

	if (root->type != JSON_OBJECT)
		return "it is no object";
	if (json_get(root, "schema_version") == NULL ||
	    json_to_u64(json_get(root, "schema_version"), &version) < 0 ||
	    version != 1)
		return "its schema_version is not 1";
	*id = string_of(json_get(root, "remote_plugin_id"));
	if (*id != NULL)
		*id = trimmed(*id);
	if (*id == NULL)
		return "it has no remote_plugin_id";
	return strlen(*id) > PLUGIN_REMOTE_ID_MAX
		   ? "its remote_plugin_id has over 1024 bytes"
		   : NULL;
}

char *
plugin_remote_id(const char *text, size_t len, char error[PLUGIN_ERROR_MAX])
{
	struct json_doc doc;
	char *id = NULL;
	const char *wrong;

	if (json_parse(&doc, text, len) < 0)
		wrong = doc.error;
	else
		wrong = take_remote_id(doc.root, &id);
	if (wrong != NULL) {
		snprintf(error, PLUGIN_ERROR_MAX, "%s", wrong);
		free(id);
		id = NULL;
	}
	json_clear(&doc);
	return id;
}

/*
 * A plugin: its manifest, the files that it names, and its skills.
 */

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
declared_path(
    struct place *p, const char *manifest, const char *key, struct slice named)
{
	struct slice below = { NULL, 0 };

	if (named.ptr == NULL)
		return NULL;
	if (named.len > 2 && memcmp(named.ptr, "./", 2) == 0)
		below = (struct slice){ named.ptr + 2, named.len - 2 };
	if (below.len > 0 && memchr(below.ptr, '\0', below.len) == NULL &&
	    !has_parent(below))
		return join(p->root, below);
	if (p->d->roots)
		discover_warn(p->d, NO_METADATA,
		    "ignoring %s in %s: path must start with `./`", key,
		    manifest);
	else
		discover_warn(p->d, NO_METADATA,
		    "%s: `%s` in the manifest must begin with ./ and stay in "
		    "the plugin",
		    p->root, key);
	return NULL;
}

/* A file that a manifest names, or else the one with the usual name. */
static void
write_config(struct json_writer *w, struct place *p, const char *manifest,
    const char *key, struct slice named, const char *usual)
{
	_cleanup_free_ char *path = declared_path(p, manifest, key, named);
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
	if (declared && err == -ENOENT && !p->d->roots)
		discover_warn(p->d, NO_METADATA,
		    "%s: `%s` in the manifest names no file", path, key);
	json_null(w);
}

static void
write_servers(
    struct json_writer *w, const char *path, const struct json_value *servers)
{
	struct json_text t;

	json_text_init(&t, 2 * FILE_BYTES_MAX);
	json_copy(&t.w, servers);
	discover_write_file(w, path, &t.buf);
	buf_clear(&t.buf);
}

void
plugin_write_configs(struct json_writer *w, struct place *p,
    const char *manifest, const struct plugin_manifest *m)
{
	_cleanup_free_ char *uri = discover_uri_of(manifest);

	json_key(w, "mcpConfig");
	if (m->mcp_servers == NULL)
		write_config(w, p, uri, "mcpServers", m->mcp, ".mcp.json");
	else if (p->d->roots) /* they are no file; the client has them */
		json_null(w);
	else
		write_servers(w, manifest, m->mcp_servers);
	json_key(w, "appsConfig");
	write_config(w, p, uri, "apps", m->apps, ".app.json");
}

static void
write_files(struct json_writer *w, struct place *p, const char *path,
    const struct buf *text, const struct plugin_manifest *m)
{
	json_key_begin(w, "files", '{');
	json_key(w, "manifest");
	discover_write_file(w, path, text);
	plugin_write_configs(w, p, path, m);
	json_end(w, '}');
}

static unsigned
write_skills(struct json_writer *w, struct place *p)
{
	/* The plugin itself counts too. */
	unsigned count = 0, room = FOUND_MAX - p->d->found - 1;

	json_key_begin(w, "skills", '[');
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
	struct json_text t;
	unsigned count;

	if (m->display_name != NULL)
		name = m->display_name;
	else if (name[strspn(name, " \t\r\n")] == '\0')
		name = strrchr(p->root, '/') + 1;
	json_text_init(&t, ANSWER_BYTES_MAX);
	json_begin(&t.w, '{');
	json_key_optional(&t.w, "id", in->id);
	json_key_optional(&t.w, "displayName", name);
	json_key_optional(&t.w, "remotePluginId", in->remote_id);
	json_key_optional(&t.w, "version", in->version);
	json_key_path(&t.w, "root", p->root);
	write_files(&t.w, p, path, text, m);
	count = write_skills(&t.w, p);
	json_end(&t.w, '}');
	discover_admit(p->d, &p->d->plugins, &t, 1 + count);
	buf_clear(&t.buf);
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
