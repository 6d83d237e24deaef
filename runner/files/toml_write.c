/* SPDX-License-Identifier: ISC */
/*
 * Writes what is picked of a TOML document. In each table, tables come after
 * the other members, each under its own header.
 */
#include "base.h"
#include "toml.h"

bool
toml_pick(struct toml_doc *doc, const struct slice *keys, size_t n)
{
	struct toml_value *v = &doc->root, *way[TOML_DEPTH_MAX];
	size_t depth = 0;

	while (depth < n && v->type == TOML_TABLE) {
		struct toml_value *next = toml_get(v, keys[depth]);

		if (next == NULL || depth == TOML_DEPTH_MAX)
			break;
		way[depth++] = v = next;
	}
	if (depth == 0)
		return false;
	for (size_t i = 0; i < depth; i++)
		way[i]->passed = true;
	v->picked |= depth == n || v->type != TOML_TABLE;
	return true;
}

void
toml_write_string(struct buf *b, struct slice text)
{
	char escape[8];

	buf_puts(b, "\"");
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c == '"' || c == '\\')
			snprintf(escape, sizeof(escape), "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			snprintf(escape, sizeof(escape), "\\u%04X", c);
		else
			snprintf(escape, sizeof(escape), "%c", c);
		buf_puts(b, escape);
	}
	buf_puts(b, "\"");
}

static void
write_key(struct buf *b, struct slice key)
{
	static const char bare[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	bool quoted = key.len == 0;

	for (size_t i = 0; i < key.len; i++)
		quoted |= key.ptr[i] == '\0' || !strchr(bare, key.ptr[i]);
	if (quoted)
		toml_write_string(b, key);
	else
		buf_put(b, key.ptr, key.len);
}

static void
write_value(struct buf *b, const struct toml_value *v)
{
	bool array = v->type == TOML_ARRAY;

	if (v->type == TOML_STRING) {
		toml_write_string(b, v->text);
		return;
	}
	if (v->type == TOML_LITERAL) {
		buf_put(b, v->text.ptr, v->text.len);
		return;
	}
	buf_puts(b, array ? "[" : "{");
	for (const struct toml_value *m = v->first; m != NULL; m = m->next) {
		buf_puts(b, m != v->first ? ", " : array ? "" : " ");
		if (!array) {
			write_key(b, m->key);
			buf_puts(b, " = ");
		}
		write_value(b, m);
	}
	buf_puts(b, array ? "]" : v->first ? " }" : "}");
}

static bool
is_tables(const struct toml_value *v)
{
	if (v->type != TOML_ARRAY || v->first == NULL)
		return false;
	for (const struct toml_value *m = v->first; m != NULL; m = m->next)
		if (m->type != TOML_TABLE)
			return false;
	return true;
}

static bool
is_wanted(const struct toml_value *v, bool all)
{
	return all || v->picked || v->passed;
}

/* A table's header is the path to it. This is one name of that path. */
struct step {
	const struct step *up;
	struct slice key;
};

static void
write_way(struct buf *b, const struct step *s)
{
	if (s->up != NULL) {
		write_way(b, s->up);
		buf_puts(b, ".");
	}
	write_key(b, s->key);
}

static void
write_header(struct buf *b, const struct step *s, bool array)
{
	buf_puts(b, b->len > 0 ? "\n" : "");
	buf_puts(b, array ? "[[" : "[");
	write_way(b, s);
	buf_puts(b, array ? "]]\n" : "]\n");
}

static void write_table(struct buf *b, const struct toml_value *table,
    const struct step *at, bool all);

/* A table that contains only tables needs no header of its own. */
static bool
needs_header(const struct toml_value *table, bool all)
{
	bool any = false;

	for (const struct toml_value *v = table->first; v != NULL; v = v->next)
		if (is_wanted(v, all)) {
			any = true;
			if (v->type != TOML_TABLE && !is_tables(v))
				return true;
		}
	return !any;
}

static void
write_below(
    struct buf *b, const struct toml_value *v, const struct step *at, bool all)
{
	struct step here = { at, v->key };

	all |= v->picked;
	if (v->type == TOML_TABLE) {
		if (needs_header(v, all))
			write_header(b, &here, false);
		write_table(b, v, &here, all);
		return;
	}
	for (const struct toml_value *m = v->first; m != NULL; m = m->next) {
		write_header(b, &here, true);
		write_table(b, m, &here, true);
	}
}

static void
write_table(struct buf *b, const struct toml_value *table,
    const struct step *at, bool all)
{
	for (const struct toml_value *v = table->first; v != NULL; v = v->next)
		if (is_wanted(v, all) && v->type != TOML_TABLE &&
		    !is_tables(v)) {
			write_key(b, v->key);
			buf_puts(b, " = ");
			write_value(b, v);
			buf_puts(b, "\n");
		}
	for (const struct toml_value *v = table->first; v != NULL; v = v->next)
		if (is_wanted(v, all) &&
		    (v->type == TOML_TABLE || is_tables(v)))
			write_below(b, v, at, all);
}

void
toml_write(struct buf *b, const struct toml_doc *doc)
{
	write_table(b, &doc->root, NULL, false);
}
