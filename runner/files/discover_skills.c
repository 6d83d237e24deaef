/* SPDX-License-Identifier: ISC */
/*
 * Skills of a place: their SKILL.md and agents/openai.yaml.
 */
#include "discover.h"

#include <stdlib.h>
#include <string.h>

#include "path_uri.h"
#include "skill.h"

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
	bool there = discover_read_text(p, path, &b) == 0;

	if (skill_agents_write(w,
		!there	    ? NULL
		: b.len > 0 ? (const char *)b.data
			    : "",
		there ? b.len : 0, error) < 0)
		discover_warn(p->d, NO_METADATA, "%s: %s", path, error);
	if (there)
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
	discover_write_optional(w, "name", name);
	discover_write_optional(w, "description", s->description);
	discover_write_optional(w, "shortDescription", s->short_description);
	json_key(w, "path");
	json_path(w, path);
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

void
discover_skills(struct place *p)
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
		if (discover_read_skill(&w, p, p->skills.all[i].path))
			discover_admit(p->d, &p->d->skills, &b, 1);
		buf_clear(&b);
	}
}
