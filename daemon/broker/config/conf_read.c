/* SPDX-License-Identifier: ISC */
/*
 * Reads execd.conf(5). libinih splits the lines. This file first refuses what
 * libinih would accept: long lines, bytes after a NUL, sections without keys,
 * and text after a section's name. Only the first error is reported.
 */
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "secret.h"

#define BLANKS	       " \t"
#define COMMENTS       ";#"
#define NAME_MAX_CHARS 48 /* of a section; libinih cuts names at 50 */

struct reader {
	struct conf *conf;
	const char *path;
	FILE *file;
	unsigned line;
	bool indented; /* the line continues the value above */
	bool failed;
	const struct conf_section *section;
	void *object;
	unsigned section_line;
	const struct conf_key *key; /* the key of the line above */
	uint64_t keys_seen; /* keys of this section so far, one bit per index */
	unsigned sections_seen; /* sections that may occur only once */
};

static void __attribute__((format(printf, 3, 4)))
fail(struct reader *r, unsigned line, const char *fmt, ...)
{
	char text[CONF_WHY_MAX + 128];
	va_list ap;

	if (r->failed)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_error(0, "%s:%u: %s", r->path, line, text);
	r->failed = true;
}

static void
end_section(struct reader *r)
{
	char why[CONF_WHY_MAX];

	if (r->section == NULL || r->failed)
		return;
	if (r->section->check(r->conf, r->object, why) < 0)
		fail(r, r->section_line, "%s", why);
	r->section = NULL;
}

static const struct conf_section *
find_section(const char *word, unsigned *index)
{
	for (*index = 0; conf_sections[*index] != NULL; ++*index)
		if (strcmp(conf_sections[*index]->name, word) == 0)
			return conf_sections[*index];
	return NULL;
}

static bool
is_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t len = strlen(name);

	return len > 0 && strspn(name, letters) == len;
}

/* Begins the section "limits" or "identity NAME". */
static void
begin_section(struct reader *r, char *title)
{
	char *name = strpbrk(title, BLANKS), why[CONF_WHY_MAX];
	const struct conf_section *s;
	unsigned index;

	end_section(r);
	if (name != NULL)
		*name++ = '\0';
	s = find_section(title, &index);
	if (s == NULL)
		fail(r, r->line, "unknown section `%s`", title);
	else if (s->named && (name == NULL || !is_name(name)))
		fail(r, r->line,
		    "[%s NAME] needs one name of letters, digits, dots, "
		    "underscores and hyphens",
		    title);
	else if (!s->named && name != NULL)
		fail(r, r->line, "[%s] has no name", title);
	else if (!s->named && (r->sections_seen & 1u << index))
		fail(r, r->line, "[%s] already exists", title);
	else if ((r->object = s->add(r->conf, name, why)) == NULL)
		fail(r, r->line, "%s", why);
	r->sections_seen |= 1u << index;
	r->section = r->failed ? NULL : s;
	r->section_line = r->line;
	r->keys_seen = 0;
	r->key = NULL;
}

/* Takes a line that begins with "[". */
static void
take_title(struct reader *r, const char *line)
{
	char title[NAME_MAX_CHARS + 1];
	const char *end = strchr(line, ']');
	size_t len;

	if (end == NULL) {
		fail(r, r->line, "a section's name without its `]`");
		return;
	}
	len = (size_t)(end - line) - 1;
	end += 1 + strspn(end + 1, BLANKS "\r\n");
	if (*end != '\0') {
		fail(r, r->line, "text after `]`");
	} else if (len > NAME_MAX_CHARS) {
		fail(r, r->line, "a section's name has more than %d characters",
		    NAME_MAX_CHARS);
	} else {
		memcpy(title, line + 1, len);
		title[len] = '\0';
		begin_section(r, title);
	}
}

/* libinih would cut some of these lines, but not all. */
static bool
has_comment(const char *line)
{
	const char *value =
	    strchr(BLANKS, line[0]) == NULL ? strpbrk(line, "=:") : NULL;

	return strstr(line, " ;") != NULL || strstr(line, "\t;") != NULL ||
	       (value != NULL && value[1] == ';');
}

/* Control characters that libinih takes for blanks and a reader does
 * not see. */
static bool
has_control(const char *line)
{
	size_t len = strcspn(line, "\r\n");

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' && line[i] != '\t')
			return true;
	return line[len] == '\r' && line[len + 1] != '\n' &&
	       line[len + 1] != '\0';
}

/* For ini_parse_stream(). Like fgets(), but rejects control characters and
 * lines that are too long. */
static char *
read_line(char *str, int size, void *stream)
{
	struct reader *r = stream;
	_cleanup_free_ char *line = NULL;
	size_t cap = 0, at;
	ssize_t n;

	if (r->failed || (n = getline(&line, &cap, r->file)) < 0)
		return NULL;
	r->line++;
	at = strspn(line, BLANKS);
	r->indented = at > 0;
	if (memchr(line, '\0', (size_t)n) != NULL)
		fail(r, r->line, "a NUL byte");
	else if (has_control(line))
		fail(r, r->line, "a control character");
	else if (n - (line[n - 1] == '\n') > CONF_LINE_MAX_CHARS || n >= size)
		fail(r, r->line, "a line has more than %d characters",
		    CONF_LINE_MAX_CHARS);
	else if (strchr(COMMENTS, line[at]) == NULL && has_comment(line))
		fail(r, r->line, "a comment needs a line of its own");
	else if (line[at] == '[' && at > 0)
		fail(r, r->line, "a section begins at the start of its line");
	else if (line[0] == '[')
		take_title(r, line);
	if (r->failed)
		return NULL;
	memcpy(str, line, (size_t)n + 1);
	return str;
}

static const struct conf_key *
find_key(const struct conf_section *s, const char *keyword)
{
	for (size_t i = 0; i < s->nkeys; i++)
		if (strcmp(s->keys[i].keyword, keyword) == 0)
			return &s->keys[i];
	return NULL;
}

/* Tells whether the key is taken. An indented line continues a list. */
static bool
check_key(struct reader *r, const struct conf_key *key, const char *keyword)
{
	uint64_t bit = key ? 1ull << (key - r->section->keys) : 0;

	if (key == NULL)
		fail(r, r->line, "unknown key `%s` in [%s]", keyword,
		    r->section->name);
	else if (r->indented && r->key != key)
		fail(r, r->line, "an indented line that continues no value");
	else if (r->indented && !key->type->list)
		fail(r, r->line, "%s: takes one line", keyword);
	else if (!r->indented && (r->keys_seen & bit))
		fail(r, r->line, "%s: is set already", keyword);
	r->keys_seen |= bit;
	return !r->failed;
}

/* Called by libinih for a line "name = value", and for each further line of its
 * value. */
static int
take_value(
    void *user, const char *section, const char *keyword, const char *value)
{
	struct reader *r = user;
	const struct conf_key *key;
	char why[CONF_WHY_MAX];
	void *at;

	if (r->section == NULL) {
		fail(r, r->line, "`%s` is in no section", keyword);
		return 1;
	}
	key = find_key(r->section, keyword);
	if (!check_key(r, key, keyword))
		return 1;
	at = (char *)r->object + key->offset;
	if (key->type->list && !r->indented)
		key->type->clear(at);
	if (*value == '\0' && !key->type->list)
		fail(r, r->line, "%s: is empty", keyword);
	else if (*value != '\0' && conf_set_key(key, r->object, value, why) < 0)
		fail(r, r->line, "%s: %s", keyword, why);
	r->key = key;
	return 1;
}

int
conf_read(struct conf *c, const char *path)
{
	struct reader r = { .conf = c, .path = path };
	char why[CONF_WHY_MAX];
	int line, fd = secret_open(path, SECRET_PUBLIC, why);

	if (fd < 0) {
		log_error(0, "%s: %s", path, why);
		return -EINVAL;
	}
	r.file = fdopen(fd, "r");
	if (r.file == NULL)
		log_fatal_errno(-errno, "%s", path);
	line = ini_parse_stream(read_line, &r, take_value, &r);
	if (line > 0)
		fail(&r, (unsigned)line,
		    "neither `key = value` nor `[section]`");
	else if (line < 0 || ferror(r.file))
		fail(&r, r.line, "cannot be read");
	end_section(&r);
	fclose(r.file);
	return r.failed ? -EINVAL : 0;
}
