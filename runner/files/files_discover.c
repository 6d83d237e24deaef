/* SPDX-License-Identifier: ISC */
/*
 * capabilities/discoverV2: the skills and plugins of this machine, from
 * CODEX_HOME, ~/.agents and /etc/codex (doc/protocol.md section 13). What
 * cannot be read is left out, and a warning names it and says why.
 */
#include "discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files.h"

#define SYSTEM_SKILLS "/etc/codex/skills"

/* --- Places ------------------------------------------------------------- */

static void
search(struct place *p, const struct installed *in)
{
	_cleanup_free_ char *path = NULL, *uri = NULL;
	struct buf text;

	place_scan(p);
	if (place_read_manifest(p, p->root, &path, &text)) {
		place_add_namespace(p, path, &text);
		uri = discover_uri_of(p->root);
	} else {
		place_inherit_namespace(p);
	}
	place_find_namespaces(p, uri);
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
	place_clear(&p);
}

/* --- The answer --------------------------------------------------------- */

static size_t
answer_bytes(const struct discovery *d)
{
	/* Warnings have room of their own; the rest is braces. */
	return d->plugins_text.len + d->skills_text.len + 256 +
	       WARNINGS_MAX * (WARNING_BYTES_MAX + sizeof(NO_METADATA));
}

/* Appends what was found unless the answer has no room for it. */
void
discover_admit(struct discovery *d, struct json_writer *to,
    const struct buf *text, unsigned count)
{
	if (d->found + count > FOUND_MAX || text->failed ||
	    answer_bytes(d) + text->len > ANSWER_BYTES_MAX) {
		d->truncated = true;
		return;
	}
	d->found += count;
	json_raw(to, (const char *)text->data, text->len);
}

void
discover_write_optional(
    struct json_writer *w, const char *key, const char *text)
{
	json_key(w, key);
	if (text != NULL)
		json_cstring(w, text);
	else
		json_null(w);
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
