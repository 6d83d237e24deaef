/* SPDX-License-Identifier: ISC */
/*
 * environmentConfig/read: returns the requested keys from the Codex
 * configuration files on this machine (doc/protocol.md section 13).
 */
#include "base.h"
#include "files.h"
#include "toml.h"

#define SYSTEM_HOME    "/etc/codex"
#define FILE_BYTES_MAX (512u << 10)
#define PARTS_MAX      (1u << 20) /* bytes of one file in an answer */

/* A file that may exist. Keys that it lacks are left out. */
struct layer {
	const char *source; /* the beginning of the source's text */
	const char *base, *name;
	const struct json_value *paths; /* the requested keys */
};

struct layers {
	struct request *request;
	struct json_writer *w;
	struct buf toml; /* of the file that was read last */
	bool failed;	 /* the request was answered with an error */
};

static void fail(struct layers *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
fail(struct layers *l, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	reply_error_text(l->request->channel, &l->request->id, RPC_INTERNAL,
	    text, strlen(text));
	l->failed = true;
}

/* --- Files -------------------------------------------------------------- */

static void
fail_to_read(struct layers *l, const char *path, int err)
{
	static const char what[] =
	    "failed to load executor-local config: Failed to read config file";

	if (err == -ENOTSUP)
		fail(l, "%s %s: path `%s` is not a file", what, path, path);
	else if (err == -EFBIG)
		fail(l, "%s %s: over %u bytes", what, path, FILE_BYTES_MAX);
	else
		fail(l, "%s %s: %s (os error %d)", what, path, strerror(-err),
		    -err);
}

/* Reads a file. *doc stays empty if there is no such file; it points into b. */
static void
load(struct layers *l, const char *path, struct buf *b, struct toml_doc *doc)
{
	int err = read_regular(path, b, FILE_BYTES_MAX);

	*doc = (struct toml_doc){ .root = { .type = TOML_TABLE } };
	if (err == -ENOENT)
		return;
	if (err < 0)
		fail_to_read(l, path, err);
	else if (toml_parse(doc, (const char *)b->data, b->len) < 0)
		fail(l, "failed to load executor-local config: %s:%u:%u: %s",
		    path, doc->line, doc->column, doc->error);
}

/* --- What is asked for -------------------------------------------------- */

static bool
pick_path(struct toml_doc *doc, const struct json_value *path)
{
	struct slice keys[TOML_DEPTH_MAX];
	size_t n = 0;

	for (const struct json_value *k = path->first; k; k = k->next)
		if (n < nitems(keys))
			keys[n++] = k->text;
	return toml_pick(doc, keys, n);
}

/* Returns false if the file has none of the paths. */
static bool
pick(struct layers *l, struct toml_doc *doc, const struct json_value *paths,
    const char *path)
{
	bool any = false;

	for (const struct json_value *p = paths->first; p; p = p->next)
		any |= pick_path(doc, p);
	buf_clear(&l->toml);
	buf_init(&l->toml, PARTS_MAX);
	if (any)
		toml_write(&l->toml, doc);
	if (l->toml.failed)
		fail(l,
		    "failed to load executor-local config: what is asked for "
		    "of %s takes over %u bytes",
		    path, PARTS_MAX);
	return any && !l->failed;
}

static void
write_layer(struct layers *l, const char *source, const char *base)
{
	json_begin(l->w, '{');
	json_key_cstring(l->w, "source", source);
	json_key_path(l->w, "baseDir", base);
	json_key_string(l->w, "toml", (const char *)l->toml.data, l->toml.len);
	json_end(l->w, '}');
}

/*
 * Returns 1 if the file exists and has something that was requested, otherwise
 * 0.
 */
static unsigned
add_layer(struct layers *l, const struct layer *layer)
{
	_cleanup_free_ char *path =
	    xasprintf("%s/%s", layer->base, layer->name);
	_cleanup_free_ char *source = xasprintf(
	    "%s%s%s", layer->source, path, layer->source[0] != '\0' ? ")" : "");
	struct toml_doc doc;
	unsigned added = 0;
	struct buf b;

	buf_init(&b, FILE_BYTES_MAX);
	load(l, path, &b, &doc);
	if (!l->failed && pick(l, &doc, layer->paths, path)) {
		write_layer(l, source, layer->base);
		added = 1;
	}
	toml_clear(&doc);
	buf_clear(&b);
	return added;
}

/* --- What an older file requires ---------------------------------------- */

static struct slice
text_of(const struct toml_doc *doc, const char *key)
{
	const struct toml_value *v = toml_get(&doc->root, slice_of(key));

	if (v == NULL || v->type != TOML_STRING)
		return (struct slice){ "", 0 };
	return v->text;
}

/*
 * managed_config.toml sets one value, but requirements list the values that may
 * be chosen. Reading alone may always be chosen.
 */
static void
translate(struct buf *b, const struct toml_doc *managed)
{
	struct slice policy = text_of(managed, "approval_policy");
	struct slice mode = text_of(managed, "sandbox_mode");

	if (slice_equal(policy, SLICE("on-failure")))
		policy = SLICE("on-request");
	if (policy.len > 0) {
		buf_puts(b, "allowed_approval_policies = [");
		toml_write_string(b, policy);
		buf_puts(b, "]\n");
	}
	if (mode.len > 0) {
		buf_puts(b, "allowed_sandbox_modes = [\"read-only\"");
		if (!slice_equal(mode, SLICE("read-only"))) {
			buf_puts(b, ", ");
			toml_write_string(b, mode);
		}
		buf_puts(b, "]\n");
	}
}

static void
add_managed_requirements(struct layers *l, const struct json_value *paths)
{
	const char *path = SYSTEM_HOME "/managed_config.toml";
	struct toml_doc doc, translated;
	struct buf b, text;

	buf_init(&b, FILE_BYTES_MAX);
	buf_init(&text, PARTS_MAX);
	load(l, path, &b, &doc);
	translate(&text, &doc);
	toml_parse(&translated, (const char *)text.data, text.len);
	if (!l->failed && pick(l, &translated, paths, path))
		write_layer(l, path, SYSTEM_HOME);
	toml_clear(&translated);
	toml_clear(&doc);
	buf_clear(&text);
	buf_clear(&b);
}

/* --- The answer --------------------------------------------------------- */

static void
end_layers(struct layers *l, unsigned cloud_index)
{
	json_end(l->w, ']');
	json_key_u64(l->w, "cloudInsertionIndex", cloud_index);
	json_end(l->w, '}');
}

static void
begin_layers(struct layers *l, const char *key)
{
	json_key_begin(l->w, key, '{');
	json_key_begin(l->w, "layers", '[');
}

static void
write_config(
    struct layers *l, const struct fs_params *p, const char *codex_home)
{
	const struct layer of_system = { "system (", SYSTEM_HOME, "config.toml",
		p->config_paths };
	const struct layer of_user = { "user (", codex_home, "config.toml",
		p->config_paths };
	const struct layer managed = { "legacy managed_config.toml (",
		SYSTEM_HOME, "managed_config.toml", p->config_paths };
	const struct layer required = { "", SYSTEM_HOME, "requirements.toml",
		p->requirements_paths };
	unsigned cloud_index;

	begin_layers(l, "config");
	cloud_index = add_layer(l, &of_system);
	if (!l->failed)
		add_layer(l, &of_user);
	if (!l->failed)
		add_layer(l, &managed);
	end_layers(l, cloud_index);
	begin_layers(l, "requirements");
	cloud_index = l->failed ? 0 : add_layer(l, &required);
	if (!l->failed)
		add_managed_requirements(l, p->requirements_paths);
	end_layers(l, cloud_index);
}

int
file_environment_config_read(struct request *r, const struct fs_params *p)
{
	struct json_writer w;
	struct layers l = { .request = r, .w = &w };
	_cleanup_free_ char *codex_home = NULL;
	char host[HOST_NAME_MAX + 1] = "";
	struct buf b;

	if (p->cwd.foreign)
		return reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "'%.*s' is invalid on 'linux'%s", (int)p->cwd.uri.len,
		    p->cwd.uri.ptr, path_uri_hint(&p->cwd));
	codex_home = file_codex_home();
	if (codex_home == NULL)
		return reply_error(r->channel, &r->id, RPC_INTERNAL,
		    "failed to find Codex home: " FILE_NO_CODEX_HOME,
		    getenv("CODEX_HOME"));
	gethostname(host, sizeof(host) - 1);
	buf_init(&b, 64u * PARTS_MAX);
	json_writer_init(&w, &b);
	json_key_path(&w, "userHomeDir", file_user_home());
	json_key_path(&w, "codexHomeDir", codex_home);
	json_key_cstring(&w, "hostname", host);
	write_config(&l, p, codex_home);
	if (!l.failed) {
		w = reply_begin(r->channel, &r->id);
		json_raw(&w, (const char *)b.data, b.len);
		reply_end(r->channel, &w);
	}
	buf_clear(&l.toml);
	buf_clear(&b);
	return 0;
}
