/* SPDX-License-Identifier: ISC */
/*
 * capabilities/discoverV2: the skills and plugins of this machine, from
 * CODEX_HOME, ~/.agents and /etc/codex (doc/protocol.md section 13). What
 * cannot be read is left out, and a warning names it and says why.
 */

#include "base.h"
#include "discover.h"
#include "files.h"
#include "path_uri.h"
#include "utf8.h"

/*
 * One place that is searched: the files below it, and the plugins whose names
 * its skills have before their own; then its skills.
 */

/* --- Warnings ----------------------------------------------------------- */

void __attribute__((format(printf, 3, 4)))
discover_warn(struct discovery *d, const char *what, const char *fmt, ...)
{
	char detail[WARNING_BYTES_MAX];
	_cleanup_free_ char *text = NULL;
	va_list ap;

	if (++d->warning_count > WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	if (d->warning_count == WARNINGS_MAX)
		snprintf(detail, sizeof(detail), "over %d warnings",
		    WARNINGS_MAX - 1);
	text = d->roots ? xstrdup(detail) : xasprintf("%s: %s", what, detail);
	json_cstring(&d->warnings.w, text);
}

void
discover_warn_errno(
    struct discovery *d, const char *what, const char *path, int err)
{
	discover_warn(
	    d, what, "%s: %s (os error %d)", path, strerror(-err), -err);
}

/* --- Files -------------------------------------------------------------- */

/* Returns 0, -ENOENT if there is no such regular file, or -errno. */
int
discover_read_file(const char *path, struct buf *b, size_t max)
{
	int err = read_regular(path, b, max);

	return err == -ENOTSUP ? -ENOENT : err;
}

/* In the words of capabilities/discoverV2. */
static void
tell_unread(struct place *p, const char *path, int err)
{
	if (err == -EDQUOT)
		discover_warn(p->d, NO_METADATA,
		    "%s: over %u bytes are read of %s", path, PLACE_BYTES_MAX,
		    p->root);
	else if (err == -EILSEQ)
		discover_warn(p->d, NO_METADATA, "%s: it is not UTF-8", path);
	else if (err == -EFBIG)
		discover_warn(p->d, NO_METADATA, "%s: over %u bytes", path,
		    FILE_BYTES_MAX);
	else
		discover_warn_errno(p->d, NO_METADATA, path, err);
}

/* Reads text of a place. Returns 0, or -errno; all but -ENOENT is told. */
int
discover_read_text(struct place *p, const char *path, struct buf *b)
{
	int err;

	buf_init(b, FILE_BYTES_MAX + 8192);
	err = discover_read_file(path, b, FILE_BYTES_MAX);
	if (err == 0 && p->bytes + b->len > PLACE_BYTES_MAX)
		err = -EDQUOT;
	else if (err == 0 && utf8_check(0, b->data, b->len) != 0)
		err = -EILSEQ;
	if (err == 0) {
		p->bytes += b->len;
		return 0;
	}
	buf_clear(b);
	if (err != -ENOENT && p->d->roots)
		capability_tell_unread(p, path, err);
	else if (err != -ENOENT)
		tell_unread(p, path, err);
	return err;
}

void
discover_write_file(
    struct json_writer *w, const char *path, const struct buf *b)
{
	json_begin(w, '{');
	json_key_path(w, "path", path);
	json_key(w, "contents");
	json_string(w, (const char *)b->data, b->len);
	json_end(w, '}');
}

char *
discover_directory_of(const char *path, int levels)
{
	char *top = xstrdup(path), *slash;

	while (levels-- > 0 && (slash = strrchr(top, '/')) != NULL)
		*slash = '\0';
	return top;
}

char *
discover_uri_of(const char *path)
{
	struct buf b;
	char *uri;

	buf_init(&b, path_uri_room(path));
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
	f->all[f->count] = (struct found_file){ xstrdup(path),
		discover_uri_of(path), NULL, 0 };
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
			_cleanup_free_ char *top =
			    discover_directory_of(path, 2);
			struct found_file *f = add_file(&p->manifests, path);

			f->top = discover_uri_of(top);
			f->rank = i;
		}
	return true;
}

static bool
take_error(void *ctx, const char *path, int err)
{
	struct place *p = ctx;

	if (p->d->roots)
		capability_tell_unscanned(p, path, err);
	else
		discover_warn_errno(p->d, NO_METADATA, path, err);
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

void
discover_scan(struct place *p)
{
	static const struct fs_walk_options options = { DEPTH_MAX,
		DIRECTORIES_MAX, ENTRIES_MAX, true, false };
	const struct directory_visitor visitor = { take_entry, take_error, p };

	if (directory_walk(p->root, &options, &visitor))
		discover_warn(p->d, NO_METADATA,
		    "%s: over %d directories or %d entries", p->root,
		    DIRECTORIES_MAX, ENTRIES_MAX);
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
add_namespace(void *arg, const char *path, const struct buf *b)
{
	struct place *p = arg;
	char *name = plugin_manifest_name((const char *)b->data, b->len);
	struct namespace *n;

	if (name == NULL)
		return;
	n = xcalloc(1, sizeof(*n));
	n->top = discover_directory_of(path, 2);
	n->name = name;
	if (name[0] == '\0') {
		free(name);
		n->name = xstrdup(strrchr(n->top, '/') + 1);
	}
	n->next = p->namespaces;
	p->namespaces = n;
}

bool
discover_read_manifest(
    struct place *p, const char *top, char **path, struct buf *b)
{
	for (size_t i = 0; i < plugin_manifests_count; i++) {
		*path = xasprintf("%s/%s", top, plugin_manifests[i]);
		if (discover_read_text(p, *path, b) == 0)
			return true;
		free(*path);
		*path = NULL;
	}
	return false;
}

/* A place without a manifest may lie in a plugin. */
static void
visit_inherited(struct place *p, manifest_fn *visit, void *arg)
{
	_cleanup_free_ char *top = xstrdup(p->root), *path = NULL;
	struct buf b;
	char *slash;

	while ((slash = strrchr(top, '/')) != NULL) {
		*slash = '\0';
		if (discover_read_manifest(p, top, &path, &b)) {
			visit(arg, path, &b);
			buf_clear(&b);
			return;
		}
	}
}

void
discover_manifests(struct place *p, const char *own, const struct buf *text,
    manifest_fn *visit, void *arg)
{
	_cleanup_free_ char *root = discover_uri_of(p->root);
	const char *seen = root;
	struct buf b;

	if (own != NULL)
		visit(arg, own, text);
	else
		visit_inherited(p, visit, arg);
	for (size_t i = 0; i < p->manifests.count; i++) {
		const struct found_file *f = &p->manifests.all[i];

		if (strcmp(seen, f->top) == 0)
			continue;
		seen = f->top;
		if (discover_read_text(p, f->path, &b) == 0) {
			visit(arg, f->path, &b);
			buf_clear(&b);
		}
	}
}

/* The namespace that lies nearest around a path; NULL: none. */
static const char *
place_namespace_of(const struct place *p, const char *path)
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

void
discover_clear(struct place *p)
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

/* --- Skills ------------------------------------------------------------- */

/*
 * Skills of a place: their SKILL.md and agents/openai.yaml.
 */

static void
write_root(struct json_writer *w, const struct place *p)
{
	json_key_begin(w, "discoveryRoot", '{');
	json_key_cstring(w, "id", p->id);
	json_key_path(w, "path", p->root);
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

	if (discover_read_text(p, path, &b) < 0) {
		skill_agents_none(w);
		return;
	}
	if (skill_agents_write(w, (const char *)b.data, b.len, error) < 0)
		discover_warn(p->d, NO_METADATA, "%s: %s", path, error);
	buf_clear(&b);
}

/* Returns the name behind the plugin's, or NULL if it is too long. */
static char *
qualify(struct place *p, const struct skill_text *s, const char *path)
{
	const char *namespace = place_namespace_of(p, path);
	char *name = namespace == NULL ? xstrdup(s->name)
				       : xasprintf("%s:%s", namespace, s->name);

	if (skill_characters(name) <= SKILL_QUALIFIED_MAX)
		return name;
	discover_warn(p->d, NO_METADATA,
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
	_cleanup_free_ char *directory = discover_directory_of(path, 1);

	if (name == NULL)
		return false;
	json_begin(w, '{');
	json_key_optional(w, "name", name);
	json_key_optional(w, "description", s->description);
	json_key_optional(w, "shortDescription", s->short_description);
	json_key_path(w, "path", path);
	if (p->id != NULL)
		write_root(w, p);
	write_agents(w, p, directory);
	json_end(w, '}');
	return true;
}

/* Returns false if it is none. */
bool
discover_read_skill(struct json_writer *w, struct place *p, const char *path)
{
	_cleanup_free_ char *directory = discover_directory_of(path, 1);
	struct skill_text s;
	struct buf b;
	bool written = false;

	if (discover_read_text(p, path, &b) < 0)
		return false;
	if (skill_text_parse(&s, (const char *)b.data, b.len,
		strrchr(directory, '/') + 1) < 0)
		discover_warn(p->d, NO_METADATA, "%s: %s", path, s.error);
	else
		written = write_skill(w, p, path, &s);
	skill_text_clear(&s);
	buf_clear(&b);
	return written;
}

/* Appends the skills of the place to the answer. */
static void
discover_skills(struct place *p)
{
	struct json_text skill;

	for (size_t i = 0; i < p->skills.count; i++) {
		if (p->d->found == FOUND_MAX) {
			p->d->truncated = true;
			return;
		}
		json_text_init(&skill, ANSWER_BYTES_MAX);
		if (discover_read_skill(&skill.w, p, p->skills.all[i].path))
			discover_admit(p->d, &p->d->skills, &skill, 1);
		buf_clear(&skill.buf);
	}
}

#define SYSTEM_SKILLS "/etc/codex/skills"

/* --- Places ------------------------------------------------------------- */

static void
search(struct place *p, const struct installed *in)
{
	_cleanup_free_ char *path = NULL;
	struct buf text;

	discover_scan(p);
	discover_read_manifest(p, p->root, &path, &text);
	discover_manifests(p, path, &text, add_namespace, p);
	if (in == NULL)
		discover_skills(p);
	else if (path != NULL)
		discover_plugin(p, in, path, &text);
	else
		discover_warn(
		    p->d, NO_METADATA, "%s: it has no manifest", p->root);
	if (path != NULL)
		buf_clear(&text);
}

/* A place that is not there has nothing. */
bool
discover_is_directory(struct discovery *d, const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode);
	if (errno != ENOENT)
		discover_warn_errno(d, NO_PLACE, path, -errno);
	return false;
}

void
discover_search_place(struct discovery *d, const char *root, const char *id,
    const struct installed *in)
{
	struct place p = { .d = d, .root = root, .id = id };

	if (d->places == PLACES_MAX) {
		discover_warn(d, NO_PLACE, "over %d locations", PLACES_MAX);
		return;
	}
	d->places++;
	if (discover_is_directory(d, root))
		search(&p, in);
	discover_clear(&p);
}

/* --- The answer --------------------------------------------------------- */

static size_t
answer_bytes(const struct discovery *d)
{
	/* Warnings have room of their own; the rest is braces. */
	return d->plugins.buf.len + d->skills.buf.len + 256 +
	       WARNINGS_MAX * (WARNING_BYTES_MAX + sizeof(NO_METADATA));
}

void
discover_admit(struct discovery *d, struct json_text *to,
    const struct json_text *found, unsigned count)
{
	if (d->found + count > FOUND_MAX || found->buf.failed ||
	    answer_bytes(d) + found->buf.len > ANSWER_BYTES_MAX) {
		d->truncated = true;
		return;
	}
	d->found += count;
	json_text_put(&to->w, found);
}

static void
search_all(struct discovery *d, const char *home, const char *codex_home)
{
	_cleanup_free_ char *cache = xasprintf("%s/plugins/cache", codex_home);
	_cleanup_free_ char *own = xasprintf("%s/skills", codex_home);
	_cleanup_free_ char *agents = xasprintf("%s/.agents/skills", home);

	discover_cache(d, cache);
	discover_search_place(d, own, "codex-home-skills", NULL);
	if (strcmp(own, agents) != 0)
		discover_search_place(d, agents, "user-agent-skills", NULL);
	if (strcmp(own, SYSTEM_SKILLS) != 0)
		discover_search_place(d, SYSTEM_SKILLS, "system-skills", NULL);
}

static void
write_list(struct json_writer *w, const char *key, const struct json_text *list)
{
	json_key_begin(w, key, '[');
	json_text_put(w, list);
	json_end(w, ']');
}

static void
reply_discovery(struct request *r, const struct discovery *d)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	write_list(&w, "plugins", &d->plugins);
	write_list(&w, "skills", &d->skills);
	json_key_begin(&w, "warnings", '[');
	if (d->truncated)
		json_cstring(&w, "capability discovery size limit reached");
	if (d->warnings.buf.len > 0)
		json_text_put(&w, &d->warnings);
	json_end(&w, ']');
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
	json_text_init(&d.plugins, 2 * ANSWER_BYTES_MAX);
	json_text_init(&d.skills, 2 * ANSWER_BYTES_MAX);
	json_text_init(&d.warnings, 2 * ANSWER_BYTES_MAX);
	search_all(&d, file_user_home(), codex_home);
	reply_discovery(r, &d);
	buf_clear(&d.plugins.buf);
	buf_clear(&d.skills.buf);
	buf_clear(&d.warnings.buf);
	return 0;
}
