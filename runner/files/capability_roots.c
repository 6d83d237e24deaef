/* SPDX-License-Identifier: ISC */
/*
 * capabilityRoots/discoverV1: the plugin and the skills in directories that the
 * client names, as text that nobody here has judged (doc/protocol.md section
 * 13.3).
 */

#include "base.h"
#include "discover.h"
#include "files.h"
#include "path_uri.h"

void
capability_tell_unread(struct place *p, const char *path, int err)
{
	_cleanup_free_ char *uri = discover_uri_of(path);
	struct stat st;

	if (err == -EDQUOT)
		discover_warn(p->d, NULL,
		    "capability file %s is left out: over %u bytes are read of "
		    "all roots together",
		    uri, PLACE_BYTES_MAX);
	else if (err == -EFBIG)
		discover_warn(p->d, NULL,
		    "capability file %s exceeds the %u-byte limit", uri,
		    FILE_BYTES_MAX);
	else if (err == -EILSEQ)
		discover_warn(
		    p->d, NULL, "capability file %s is not UTF-8", uri);
	else
		discover_warn(p->d, NULL,
		    "failed to %s capability file %s: %s (os error %d)",
		    stat(path, &st) < 0 ? "inspect" : "read", uri,
		    strerror(-err), -err);
}

void
capability_tell_unscanned(struct place *p, const char *path, int err)
{
	_cleanup_free_ char *uri = discover_uri_of(path);

	discover_warn(p->d, NULL,
	    "failed to scan capability path %s: %s (os error %d)", uri,
	    strerror(-err), -err);
}

/* --- What one root has -------------------------------------------------- */

static void
write_plugin(struct json_writer *w, struct place *p, const char *path,
    const struct buf *text)
{
	char error[PLUGIN_ERROR_MAX];
	struct plugin_manifest m;

	/* A manifest that is invalid is the client's to tell. It names
	 * nothing. */
	(void)plugin_manifest_parse(
	    &m, (const char *)text->data, text->len, error);
	json_begin(w, '{');
	json_key(w, "manifest");
	discover_write_file(w, path, text);
	plugin_write_configs(w, p, path, &m);
	json_end(w, '}');
	plugin_manifest_clear(&m);
}

static void
write_skill(struct json_writer *w, struct place *p, const char *path)
{
	_cleanup_free_ char *directory = discover_directory_of(path, 1);
	_cleanup_free_ char *agents =
	    xasprintf("%s/agents/openai.yaml", directory);
	struct buf text, metadata;

	if (discover_read_text(p, path, &text) < 0)
		return;
	json_begin(w, '{');
	json_key(w, "instructions");
	discover_write_file(w, path, &text);
	buf_clear(&text);
	json_key(w, "metadata");
	if (discover_read_text(p, agents, &metadata) == 0) {
		discover_write_file(w, agents, &metadata);
		buf_clear(&metadata);
	} else {
		json_null(w);
	}
	json_end(w, '}');
}

static void
write_manifest(void *arg, const char *path, const struct buf *text)
{
	discover_write_file(arg, path, text);
}

static void
write_found(struct json_writer *w, struct place *p)
{
	_cleanup_free_ char *own = NULL;
	struct buf manifest;

	discover_scan(p);
	json_key(w, "plugin");
	if (discover_read_manifest(p, p->root, &own, &manifest))
		write_plugin(w, p, own, &manifest);
	else
		json_null(w);
	json_key_begin(w, "skills", '[');
	for (size_t i = 0; i < p->skills.count; i++)
		write_skill(w, p, p->skills.all[i].path);
	json_end(w, ']');
	json_key_begin(w, "namespaceManifests", '[');
	discover_manifests(p, own, &manifest, write_manifest, w);
	json_end(w, ']');
	if (own != NULL)
		buf_clear(&manifest);
	discover_clear(p);
}

static void
write_nothing(struct json_writer *w)
{
	json_key_optional(w, "plugin", NULL);
	json_key_begin(w, "skills", '[');
	json_end(w, ']');
	json_key_begin(w, "namespaceManifests", '[');
	json_end(w, ']');
}

/* Returns the error of a root that is no directory, or NULL. The caller owns
 * it. */
static char *
inspect(const struct path_uri *path)
{
	struct stat st;

	if (path->foreign)
		return xasprintf("failed to inspect capability root %.*s: "
				 "'%.*s' is invalid on 'linux'%s",
		    (int)path->uri.len, path->uri.ptr, (int)path->uri.len,
		    path->uri.ptr, path_uri_hint(path));
	if (stat(path->path, &st) < 0)
		return xasprintf("failed to inspect capability root %.*s: %s "
				 "(os error %d)",
		    (int)path->uri.len, path->uri.ptr, strerror(errno), errno);
	return S_ISDIR(st.st_mode)
		   ? NULL
		   : xasprintf("capability root %.*s is not a directory",
			 (int)path->uri.len, path->uri.ptr);
}

/* `bytes` counts what is read of all roots. */
static void
write_root(
    struct json_writer *w, const struct capability_root *root, size_t *bytes)
{
	struct discovery d = { .roots = true };
	struct place p = { .d = &d, .root = root->path.path, .bytes = *bytes };
	_cleanup_free_ char *error = inspect(&root->path);

	json_text_init(&d.warnings, 2 * ANSWER_BYTES_MAX);
	json_begin(w, '{');
	json_key_string(w, "id", root->id.ptr, root->id.len);
	json_key_string(w, "path", root->path.uri.ptr, root->path.uri.len);
	if (error == NULL)
		write_found(w, &p);
	else
		write_nothing(w);
	json_key_begin(w, "warnings", '[');
	if (d.warnings.buf.len > 0)
		json_text_put(w, &d.warnings);
	json_end(w, ']');
	json_key_optional(w, "error", error);
	json_end(w, '}');
	buf_clear(&d.warnings.buf);
	*bytes = p.bytes;
}

int
file_capability_roots(struct request *r, const struct fs_params *p)
{
	struct json_writer w;
	size_t bytes = 0;

	if (p->nroots > CAPABILITY_ROOTS_MAX)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "capability root discovery accepts at most %d roots",
		    CAPABILITY_ROOTS_MAX);
	w = reply_begin(r->channel, &r->id);
	json_key_begin(&w, "roots", '[');
	for (size_t i = 0; i < p->nroots; i++)
		write_root(&w, &p->roots[i], &bytes);
	json_end(&w, ']');
	reply_end(r->channel, &w);
	return 0;
}
