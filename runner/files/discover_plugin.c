/* SPDX-License-Identifier: ISC */
/*
 * A plugin: its manifest, the files that it names, and its skills.
 */
#include "discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
