/* SPDX-License-Identifier: ISC */
/*
 * The configuration as text: reads execd.conf(5), writes it, and tells what is
 * different in two of them. libinih splits the lines that are read. This file
 * first refuses what libinih would accept: long lines, bytes after a NUL,
 * sections without keys, and text after a section's name. Only the first error
 * is reported.
 */
#include <ini.h>

#include "base.h"
#include "conf.h"
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
	const struct conf_key *key;    /* the key of the line above */
	bool keys_seen[CONF_KEYS_MAX]; /* of this section so far, by index */
	unsigned sections_seen;	       /* sections that may occur only once */
	const char *token; /* only the section of this one; NULL: any */
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

bool
conf_is_name(const char *name)
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
	else if (s->add == NULL && (r->sections_seen & 1u << index))
		fail(r, r->line, "[%s] already exists", title);
	else if ((r->object = s->add ? s->add(r->conf, name, why)
				     : (char *)r->conf + s->offset) == NULL)
		fail(r, r->line, "%s", why);
	r->sections_seen |= 1u << index;
	r->section = r->failed ? NULL : s;
	r->section_line = r->line;
	memset(r->keys_seen, 0, sizeof(r->keys_seen));
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

/* Keys of the past, and the sentence for who still has them. */
static const struct {
	const char *section, *keyword, *now;
} removed_keys[] = {
	{ "identity", "session-processes",
	    "all sessions of the identity together have tasks-max, and each "
	    "command has command-tasks-max" },
	{ "identity", "session-memory",
	    "all sessions of the identity together have memory-max, and each "
	    "command has command-memory-max" },
	{ "identity", "session-cpu",
	    "all sessions of the identity together have cpu-quota, and each "
	    "command has command-cpu-quota" },
	{ "identity", "max-processes",
	    "RLIMIT_NPROC counts all processes of the user, also those that "
	    "are not execd's: say tasks-max, or command-tasks-max for each "
	    "command" },
	{ "identity", "max-memory",
	    "RLIMIT_AS is called max-address-space, and memory is limited by "
	    "memory-max, and by command-memory-max for each command" },
#define OF_COMMANDS(section, keyword, now)                                     \
	{                                                                      \
		section, keyword,                                              \
		    "each command, sandboxed or not, has " now                 \
		    ", of [identity NAME] or, for everybody, of [limits]"      \
	}
	{ "limits", "max-frame-bytes",
	    "a frame may be as long as a message, which max-message-bytes "
	    "limits" },
	OF_COMMANDS("identity", "sandbox-max-processes", "command-tasks-max"),
	OF_COMMANDS("identity", "sandbox-max-memory", "command-memory-max"),
	OF_COMMANDS("identity", "sandbox-max-cpu", "command-cpu-quota"),
	OF_COMMANDS("sandbox", "max-processes", "command-tasks-max"),
	OF_COMMANDS("sandbox", "max-memory", "command-memory-max"),
	OF_COMMANDS("sandbox", "max-cpu", "command-cpu-quota"),
};

static void
refuse_key(struct reader *r, const char *keyword)
{
	for (size_t i = 0; i < nitems(removed_keys); i++)
		if (strcmp(removed_keys[i].section, r->section->name) == 0 &&
		    strcmp(removed_keys[i].keyword, keyword) == 0)
			fail(r, r->line, "%s was removed: %s", keyword,
			    removed_keys[i].now);
	fail(r, r->line, "unknown key `%s` in [%s]", keyword, r->section->name);
}

/* Tells whether the key is taken. An indented line continues a list. */
static bool
check_key(struct reader *r, const struct conf_key *key, const char *keyword)
{
	bool none = false;
	bool *seen = key ? &r->keys_seen[key - r->section->keys] : &none;

	if (key == NULL)
		refuse_key(r, keyword);
	else if (r->indented && r->key != key)
		fail(r, r->line, "an indented line that continues no value");
	else if (r->indented && !key->type->list)
		fail(r, r->line, "%s: takes one line", keyword);
	else if (!r->indented && *seen)
		fail(r, r->line, "%s: is set already", keyword);
	*seen = true;
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
	key = conf_find_key(r->section, keyword);
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
	return r.failed ? -EINVAL : 0;
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
