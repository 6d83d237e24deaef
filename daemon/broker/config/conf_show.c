/* SPDX-License-Identifier: ISC */
/*
 * Writes the configuration as text, and the differences of two of them.
 */
#include <string.h>

#include "conf.h"
#include "log.h"
#include "util.h"

/* --- text --------------------------------------------------------------- */

/* Writes the lines of one key, or nothing. */
static void
show_key(struct buf *text, const struct conf_key *key, const void *object)
{
	buf_init(text, SIZE_MAX);
	key->type->show(text, (const char *)object + key->offset);
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

	show_key(&text, key, object);
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
	if (s->named)
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

		for (size_t j = 0; (object = s->object(c, j)) != NULL; j++) {
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

	for (size_t i = 0; (other = s->object(c, i)) != NULL; i++)
		if (!s->named ||
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

	show_key(&a, key, from);
	show_key(&b, key, to);
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

	for (size_t i = 0; (object = s->object(to, i)) != NULL; i++) {
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

	for (size_t i = 0; (object = s->object(from, i)) != NULL; i++) {
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
