/* SPDX-License-Identifier: ISC */
/*
 * The configuration as text: reads execd.conf(5), writes it, and tells what is
 * different in two of them. libinih splits the lines that are read. This file
 * first refuses what libinih would accept: long lines, bytes after a NUL,
 * sections without keys, and text after a section's name. Every error is told,
 * but those of a section as a whole only if each of its lines is right.
 */
#include <dirent.h>
#include <ini.h>

#include "base.h"
#include "conf.h"
#include "nearest.h"
#include "secret.h"
#include "spawn_client.h"

#define BLANKS		" \t"
#define COMMENTS	";#"
#define NAME_MAX_CHARS	48 /* of a section; libinih cuts names at 50 */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* A file that is no configuration at all has an error in each line. */
#define ERRORS_MAX 50

struct reader {
	struct conf *conf;
	const char *path;
	FILE *file;
	unsigned line;
	bool indented; /* the line continues the value above */
	unsigned errors;
	const struct conf_section *section; /* NULL: none, or a refused one */
	void *object;
	unsigned section_line;	    /* 0: there was no section */
	unsigned section_errors;    /* how many there were before it */
	const struct conf_key *key; /* the key of the line above */
	bool key_refused;	    /* so its further lines are not read */
	unsigned key_lines[CONF_KEYS_MAX]; /* of this section; 0: not set */
	const char *token; /* only the section of this one; NULL: any */
};

static void __attribute__((format(printf, 3, 4)))
fail(struct reader *r, unsigned line, const char *fmt, ...)
{
	char text[CONF_WHY_MAX + 128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->errors++ < ERRORS_MAX)
		log_error(0, "%s:%u: %s", r->path, line, text);
	else if (r->errors == ERRORS_MAX + 1)
		log_error(0, "%s: more than %d errors", r->path, ERRORS_MAX);
}

/* Finds a key in a sentence, where it is no part of another word. */
static const char *
find_word(const char *text, const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t n = strlen(word);
	const char *at = text;

	while ((at = strstr(at, word)) != NULL &&
	       ((at > text && strchr(letters, at[-1]) != NULL) ||
		   (at[n] != '\0' && strchr(letters, at[n]) != NULL)))
		at++;
	return at;
}

/* The line of the first key that the sentence names and the section sets, or
 * that of the section. */
static unsigned
find_line(const struct reader *r, const char *why)
{
	const char *first = NULL, *at;
	unsigned line = r->section_line;

	for (size_t i = 0; i < r->section->nkeys; i++) {
		const char *keyword = r->section->keys[i].keyword;

		if (r->key_lines[i] == 0)
			continue;
		at = find_word(why, keyword);
		/* The rules of [sandbox] check those of an identity, too. */
		if (at == NULL && strncmp(keyword, "sandbox-", 8) == 0)
			at = find_word(why, keyword + 8);
		if (at == NULL || (first != NULL && at > first))
			continue;
		first = at;
		line = r->key_lines[i];
	}
	return line;
}

static void
end_section(struct reader *r)
{
	char why[CONF_WHY_MAX];

	if (r->section != NULL && r->errors == r->section_errors &&
	    r->section->check(r->conf, r->object, why) < 0)
		fail(r, find_line(r, why), "%s", why);
	r->section = NULL;
	r->section_errors = r->errors;
	r->section_line = r->line;
}

static const struct conf_section *
find_section(const char *word, unsigned *index)
{
	for (*index = 0; conf_sections[*index] != NULL; ++*index)
		if (strcmp(conf_sections[*index]->name, word) == 0)
			return conf_sections[*index];
	return NULL;
}

bool
conf_is_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t len = strlen(name);

	return len > 0 && strspn(name, letters) == len;
}

static void
refuse_section(struct reader *r, const char *title)
{
	struct nearest meant = { .given = title };

	for (size_t i = 0; conf_sections[i] != NULL; i++)
		nearest_try(&meant, conf_sections[i]->name);
	if (meant.name != NULL)
		fail(r, r->line, "unknown section `%s`: did you mean `%s`?",
		    title, meant.name);
	else
		fail(r, r->line, "unknown section `%s`", title);
}

/* Begins the section "limits" or "identity NAME". */
static void
begin_section(struct reader *r, char *title)
{
	char *name = strpbrk(title, BLANKS), why[CONF_WHY_MAX];
	const struct conf_section *s;
	unsigned index;

	if (name != NULL)
		*name++ = '\0';
	s = find_section(title, &index);
	if (s == NULL)
		refuse_section(r, title);
	else if (r->token != NULL && (s != &conf_token || name == NULL ||
					 strcmp(name, r->token) != 0))
		fail(
		    r, r->line, "nothing may be here but [token %s]", r->token);
	else if (s->add != NULL && (name == NULL || !conf_is_name(name)))
		fail(r, r->line,
		    "[%s NAME] needs one name of letters, digits, dots, "
		    "underscores and hyphens",
		    title);
	else if (s->add == NULL && name != NULL)
		fail(r, r->line, "[%s] has no name", title);
	else if (s->add == NULL && (r->conf->sections_seen & 1u << index))
		fail(r, r->line, "[%s] already exists", title);
	else if ((r->object = s->add ? s->add(r->conf, name, why)
				     : (char *)r->conf + s->offset) == NULL)
		fail(r, r->line, "%s", why);
	r->conf->sections_seen |= 1u << index;
	r->section = r->errors > r->section_errors ? NULL : s;
	if (r->section != NULL && r->token == NULL)
		conf_note(r->conf, s, r->object, NULL, r->path, r->line);
	memset(r->key_lines, 0, sizeof(r->key_lines));
	r->key = NULL;
}

/* Takes a line that begins with "[". */
static void
take_title(struct reader *r, const char *line)
{
	char title[NAME_MAX_CHARS + 1];
	const char *end = strchr(line, ']');
	size_t len;

	end_section(r);
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

/* Editors of Windows begin a file with it. Returns the new length. */
static size_t
drop_mark(char *line, size_t n)
{
	size_t mark = strlen(BYTE_ORDER_MARK);

	if (n < mark || memcmp(line, BYTE_ORDER_MARK, mark) != 0)
		return n;
	memmove(line, line + mark, n - mark + 1);
	return n - mark;
}

/* For ini_parse_stream(). Like fgets(), but rejects control characters and
 * lines that are too long. A line that is refused is a blank one to libinih. */
static char *
read_line(char *str, int size, void *stream)
{
	struct reader *r = stream;
	_cleanup_free_ char *line = NULL;
	size_t cap = 0, at;
	unsigned before = r->errors;
	ssize_t n;

	if ((n = getline(&line, &cap, r->file)) < 0)
		return NULL;
	if (r->line++ == 0)
		n = (ssize_t)drop_mark(line, (size_t)n);
	at = strspn(line, BLANKS);
	r->indented = at > 0;
	if (n == 0)
		;
	else if (memchr(line, '\0', (size_t)n) != NULL)
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
	else if (strchr(BLANKS COMMENTS "\r\n", line[0]) == NULL &&
		 strpbrk(line, "=:") == NULL)
		fail(r, r->line, "neither `key = value` nor `[section]`");
	return memcpy(str, r->errors > before ? "\n" : line,
	    r->errors > before ? 2 : (size_t)n + 1);
}

/* Makes "did you mean `detached-ttl`?", or names the section that has the
 * key. */
static const char *
guess_key(const struct reader *r, const char *keyword, char hint[CONF_WHY_MAX])
{
	struct nearest meant = { .given = keyword };

	hint[0] = '\0';
	for (size_t i = 0; conf_sections[i] != NULL; i++)
		if (conf_find_key(conf_sections[i], keyword) != NULL)
			snprintf(hint, CONF_WHY_MAX, ": it is a key of [%s%s]",
			    conf_sections[i]->name,
			    conf_sections[i]->add != NULL ? " NAME" : "");
	for (size_t i = 0; i < r->section->nkeys; i++)
		nearest_try(&meant, r->section->keys[i].keyword);
	if (meant.name != NULL)
		snprintf(
		    hint, CONF_WHY_MAX, ": did you mean `%s`?", meant.name);
	return hint;
}

/* Tells whether the key is taken. An indented line continues a list. */
static bool
check_key(struct reader *r, const struct conf_key *key, const char *keyword)
{
	unsigned none = 0, before = r->errors;
	unsigned *line = key ? &r->key_lines[key - r->section->keys] : &none;
	char hint[CONF_WHY_MAX];

	if (key == NULL)
		fail(r, r->line, "unknown key `%s` in [%s]%s", keyword,
		    r->section->name, guess_key(r, keyword, hint));
	else if (r->indented && r->key != key)
		fail(r, r->line, "an indented line that continues no value");
	else if (r->indented && !key->type->list)
		fail(r, r->line, "%s: takes one line", keyword);
	else if (!r->indented && *line > 0)
		fail(r, r->line, "%s: is set already, in line %u", keyword,
		    *line);
	if (*line == 0)
		*line = r->line;
	return r->errors == before;
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
	unsigned before = r->errors;
	void *at;

	if (r->section == NULL) {
		if (r->section_line == 0)
			fail(r, r->line, "`%s` is in no section", keyword);
		return 1;
	}
	if (r->indented && r->key_refused)
		return 1;
	key = conf_find_key(r->section, keyword);
	r->key_refused = !check_key(r, key, keyword);
	if (r->key_refused)
		return 1;
	at = (char *)r->object + key->offset;
	if (key->type->list && !r->indented)
		key->type->clear(at);
	if (*value == '\0' && !key->type->list)
		fail(r, r->line, "%s: is empty", keyword);
	else if (*value != '\0' && conf_set_key(key, r->object, value, why) < 0)
		fail(r, r->line, "%s: %s%s", keyword, why,
		    strstr(value, " #") == NULL
			? ""
			: "; a comment needs a line of its own");
	r->key = key;
	r->key_refused = r->errors > before;
	/* A token that is left out is no object any more. */
	if (!r->indented && !r->key_refused && r->token == NULL)
		conf_note(
		    r->conf, r->section, r->object, key, r->path, r->line);
	return 1;
}

int
conf_read(struct conf *c, const char *path)
{
	return conf_read_token(c, path, NULL);
}

int
conf_read_token(struct conf *c, const char *path, const char *name)
{
	struct reader r = { .conf = c, .path = path, .token = name };
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
	return r.errors > 0 ? -EINVAL : 0;
}

/* --- conf.d ------------------------------------------------------------- */

/* An editor and a package manager leave copies there that have other names. */
static int
is_part(const struct dirent *entry)
{
	const char *end = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && strcmp(end ? end : "", ".conf") == 0;
}

/* A directory that cannot be looked into may hold what restricts somebody. One
 * that may not be there at all, because that cannot be seen, is told. */
static int
tell_unread(const char *directory, int err)
{
	struct stat st;

	if (err == -ENOENT)
		return 0;
	log_error(err, "%s: the files in it are not read", directory);
	return stat(directory, &st) < 0 && errno == EACCES ? 0 : -EINVAL;
}

int
conf_read_all(struct conf *c)
{
	_cleanup_free_ char *directory = conf_beside(c->path, "conf.d");
	int err = conf_read(c, c->path);
	struct dirent **names;
	int n = scandir(directory, &names, is_part, alphasort);

	if (n < 0)
		return tell_unread(directory, -errno) < 0 ? -EINVAL : err;
	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path =
		    xasprintf("%s/%s", directory, names[i]->d_name);

		strings_add(&c->parts, path);
		free(names[i]);
	}
	free(names);
	c->has_parts = true;
	/* In the past, one that cannot be read was not there. */
	for (size_t i = 0; i < c->parts.count; i++)
		if (conf_read(c, c->parts.items[i]) < 0 && !spawn_is_past())
			err = -EINVAL;
	return err;
}

/* --- text --------------------------------------------------------------- */

void
conf_show_key(struct buf *text, const struct conf_key *key, const void *object)
{
	buf_init(text, SIZE_MAX);
	key->type->show(key->type, text, (const char *)object + key->offset);
	buf_put_u8(text, '\0');
}

/* A value that filled a line of the file may not fit on one line with " = ". */
static void
print_first(struct buf *b, const struct conf_key *key, const char *line)
{
	bool fits =
	    strlen(key->keyword) + 3 + strlen(line) <= CONF_LINE_MAX_CHARS;

	if (fits)
		buf_printf(b, "%s = %s\n", key->keyword, line);
	else if (key->type->list)
		buf_printf(b, "%s =\n\t%s\n", key->keyword, line);
	else
		buf_printf(b, "%s=%s\n", key->keyword, line);
}

static void
print_key(struct buf *b, const struct conf_key *key, const void *object)
{
	struct buf text;
	char *rest, *line;
	bool first = true;

	conf_show_key(&text, key, object);
	rest = (char *)text.data;
	while ((line = strsep(&rest, "\n")) != NULL && *line != '\0') {
		if (first)
			print_first(b, key, line);
		else
			buf_printf(b, "\t%s\n", line);
		first = false;
	}
	buf_clear(&text);
}

static void
print_title(struct buf *b, const struct conf_section *s, const void *object)
{
	if (s->add != NULL)
		buf_printf(b, "[%s %s]\n", s->name, *(char *const *)object);
	else
		buf_printf(b, "[%s]\n", s->name);
}

void
conf_print(const struct conf *c, struct buf *b)
{
	for (size_t i = 0; conf_sections[i] != NULL; i++) {
		const struct conf_section *s = conf_sections[i];
		void *object;

		for (size_t j = 0; (object = conf_object(s, c, j)) != NULL;
		     j++) {
			print_title(b, s, object);
			for (size_t k = 0; k < s->nkeys; k++)
				print_key(b, &s->keys[k], object);
		}
	}
}

/* --- differences -------------------------------------------------------- */

/* Finds the object of the same section and name in the other configuration. */
static void *
counterpart(
    const struct conf_section *s, const struct conf *c, const void *object)
{
	void *other;

	for (size_t i = 0; (other = conf_object(s, c, i)) != NULL; i++)
		if (s->add == NULL ||
		    strcmp(*(char *const *)object, *(char *const *)other) == 0)
			return other;
	return NULL;
}

/* Makes one line for the log, with the entries of a list separated by
 * commas. */
static const char *
flatten(struct buf *text)
{
	char *s = (char *)text->data;
	size_t len = strlen(s);

	if (len == 0)
		return "unset";
	s[len - 1] = '\0';
	for (; *s != '\0'; s++)
		if (*s == '\n')
			*s = ',';
	return (char *)text->data;
}

static unsigned
log_key(const char *title, const struct conf_key *key, const void *from,
    const void *to)
{
	struct buf a, b;
	bool differs;

	conf_show_key(&a, key, from);
	conf_show_key(&b, key, to);
	differs = a.len != b.len || memcmp(a.data, b.data, a.len) != 0;
	if (differs && key->type->secret)
		log_info("reload: %s %s: changed", title, key->keyword);
	else if (differs)
		log_info("reload: %s %s: %s, was %s", title, key->keyword,
		    flatten(&b), flatten(&a));
	buf_clear(&a);
	buf_clear(&b);
	return differs;
}

/* Makes "[identity ci]" for the log. */
static void
make_title(struct buf *title, const struct conf_section *s, const void *object)
{
	buf_init(title, SIZE_MAX);
	print_title(title, s, object);
	title->data[title->len - 1] = '\0';
}

static unsigned
log_section(const struct conf_section *s, const struct conf *from,
    const struct conf *to)
{
	unsigned n = 0;
	void *object, *other;
	struct buf title;

	for (size_t i = 0; (object = conf_object(s, to, i)) != NULL; i++) {
		make_title(&title, s, object);
		other = counterpart(s, from, object);
		if (other == NULL)
			log_info("reload: %s: new", title.data);
		n += other == NULL;
		for (size_t k = 0; other != NULL && k < s->nkeys; k++)
			n += log_key(
			    (char *)title.data, &s->keys[k], other, object);
		buf_clear(&title);
	}
	return n;
}

static unsigned
log_gone(const struct conf_section *s, const struct conf *from,
    const struct conf *to)
{
	unsigned n = 0;
	struct buf title;
	void *object;

	for (size_t i = 0; (object = conf_object(s, from, i)) != NULL; i++) {
		if (counterpart(s, to, object) != NULL)
			continue;
		make_title(&title, s, object);
		log_info("reload: %s: gone", title.data);
		buf_clear(&title);
		n++;
	}
	return n;
}

/* Compares the contents of files, which are no values of keys. */
static unsigned
log_files(const struct conf *from, const struct conf *to)
{
	const struct token_rules *a = &from->tokens, *b = &to->tokens;
	unsigned n = 0;

	for (size_t i = 0; i < to->nlisteners; i++) {
		const struct listener *l = to->listeners[i];
		const struct listener *old =
		    counterpart(&conf_listener, from, l);

		if (old == NULL ||
		    memcmp(l->version, old->version, sizeof(l->version)) == 0)
			continue;
		log_info("reload: [listener %s]: another certificate, key, "
			 "client CA or CRL",
		    l->name);
		n++;
	}
	if (a->secret && b->secret &&
	    (a->secret_len != b->secret_len ||
		memcmp(a->secret, b->secret, a->secret_len) != 0)) {
		log_info("reload: [signed-tokens]: another secret");
		n++;
	}
	if (a->jwks_file && b->jwks_file &&
	    memcmp(a->jwks_digest, b->jwks_digest, sizeof(a->jwks_digest)) !=
		0) {
		log_info("reload: [signed-tokens]: other keys");
		n++;
	}
	return n;
}

unsigned
conf_log_changes(const struct conf *from, const struct conf *to)
{
	unsigned n = 0;

	for (size_t i = 0; conf_sections[i] != NULL; i++)
		n += log_section(conf_sections[i], from, to) +
		     log_gone(conf_sections[i], from, to);
	return n + log_files(from, to);
}
