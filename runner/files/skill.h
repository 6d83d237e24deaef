/* SPDX-License-Identifier: ISC */
/*
 * A skill: what the front matter of its SKILL.md says, and its
 * agents/openai.yaml. Both files may be of anybody.
 */
#ifndef SKILL_H
#define SKILL_H

#include "json.h"
#include "yaml_tree.h"

#define SKILL_NAME_MAX	    64	 /* characters */
#define SKILL_QUALIFIED_MAX 129	 /* with the name of its plugin */
#define SKILL_TOOL_WORD_MAX 64	 /* a tool's type and transport */
#define SKILL_TOOL_TEXT_MAX 1024 /* its other members */
#define SKILL_ERROR_MAX	    192

struct skill_text {
	char *name, *description;
	char *short_description; /* NULL: none */
	char error[SKILL_ERROR_MAX];
};

/*
 * Reads SKILL.md. `directory` is the name if the text has none. Returns 0, or
 * -EBADMSG with the error. Call skill_text_clear() in either case.
 */
int skill_text_parse(
    struct skill_text *s, const char *text, size_t len, const char *directory);
void skill_text_clear(struct skill_text *s);

/*
 * Appends the members "dependencies" and "policy" that agents/openai.yaml has.
 * Returns 0, or -EBADMSG with the error; then both are null.
 */
int skill_agents_write(struct json_writer *w, const char *text, size_t len,
    char error[SKILL_ERROR_MAX]);
/* Appends them as null: there is no such file. */
void skill_agents_none(struct json_writer *w);

/* Returns the number of characters in UTF-8. */
size_t skill_characters(const char *text);

#endif
