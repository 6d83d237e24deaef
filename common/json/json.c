/* SPDX-License-Identifier: ISC */
/*
 * Parses JSON text into a small tree. Apart from json_memory.c this is the only
 * file that uses yajl. It uses only the callback parser, because yajl's own
 * tree recurses, keeps duplicate keys and cuts strings at NUL. What yajl
 * accepts too easily is checked here and in json_scan.c.
 */
#include "json.h"

#include <yajl/yajl_parse.h>

#include "json_memory.h"
#include "json_scan.h"
#include "siphash.h"
#include "table.h"

#define BLOCK_FIRST_BYTES 1024
#define BLOCK_MAX_BYTES	  (64u << 10)

/* In larger objects, duplicate keys are found through a hash table. */
#define KEYS_BY_HASH 16

struct json_block {
	struct json_block *next;
	size_t used, cap;
	_Alignas(16) char bytes[];
};

/* A container that is still open while parsing. */
struct level {
	struct json_value *value;
	struct json_value *last; /* its newest child */
	struct slice key;	 /* key of the next member */
	struct table keys;	 /* used from KEYS_BY_HASH members on */
};

struct key_node {
	struct table_node node;
	struct slice key;
};

struct parser {
	struct json_doc *doc;
	const char *text;
	size_t len;
	yajl_handle handle;
	struct json_cuts cuts;
	size_t piece; /* offset of the piece that yajl parses now */
	/* the cut that the next string stands for; or NULL */
	const struct json_cut *whole;
	struct level levels[JSON_MAX_DEPTH];
	size_t depth;
	size_t root_end; /* offset after the root value; 0: not complete */
};

void *
json_alloc(struct json_doc *doc, size_t n)
{
	struct json_block *b = doc->arena;
	void *p;

	n = (n + 15) & ~(size_t)15;
	if (b == NULL || b->cap - b->used < n) {
		size_t cap = b ? b->cap * 2 : BLOCK_FIRST_BYTES;

		if (cap > BLOCK_MAX_BYTES)
			cap = BLOCK_MAX_BYTES;
		if (cap < n)
			cap = n;
		b = xmalloc(sizeof(*b) + cap);
		b->used = 0;
		b->cap = cap;
		b->next = doc->arena;
		doc->arena = b;
	}
	p = b->bytes + b->used;
	b->used += n;
	return p;
}

void
json_clear(struct json_doc *doc)
{
	struct json_block *next;

	for (struct json_block *b = doc->arena; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	doc->arena = NULL;
	doc->root = NULL;
}

static void
move(struct slice *s, const char *from, size_t len, const char *to)
{
	uintptr_t at = (uintptr_t)s->ptr, begin = (uintptr_t)from;

	if (at >= begin && at + s->len <= begin + len)
		s->ptr = to + (at - begin);
}

void
json_move(struct json_doc *doc, const char *from, size_t len, const char *to)
{
	struct json_value *after[JSON_MAX_DEPTH], *v = doc->root;
	size_t depth = 0;

	while (v != NULL) {
		move(&v->key, from, len, to);
		move(&v->text, from, len, to);
		if (v->first != NULL) {
			after[depth++] = v->next;
			v = v->first;
			continue;
		}
		v = v->next;
		while (v == NULL && depth > 0)
			v = after[--depth];
	}
}

/* Records an error in serde's format. Lines count from 1, and columns are bytes
 * within the line. */
static void
fail_at(struct parser *p, size_t offset, const char *what)
{
	size_t line = 1, column = 0;

	if (offset > p->len)
		offset = p->len;
	for (size_t i = 0; i < offset; i++) {
		column++;
		if (p->text[i] == '\n') {
			line++;
			column = 0;
		}
	}
	snprintf(p->doc->error, sizeof(p->doc->error),
	    "%.90s at line %zu column %zu", what, line, column);
}

static size_t
offset_now(const struct parser *p)
{
	return p->piece + yajl_get_bytes_consumed(p->handle);
}

/* Returns the string or number as a slice. Bytes inside the parsed text stay
 * there. Bytes that yajl unescaped or joined are copied to the arena. */
static struct slice
keep(struct parser *p, const void *ptr, size_t len)
{
	uintptr_t at = (uintptr_t)ptr, begin = (uintptr_t)p->text;
	const struct json_cut *whole = p->whole;
	char *copy;

	if (whole != NULL) {
		p->whole = NULL;
		return (struct slice){ p->text + whole->from,
			whole->to - whole->from };
	}
	if (at >= begin && at + len <= begin + p->len)
		return (struct slice){ ptr, len };
	copy = json_alloc(p->doc, len + 1);
	memcpy(copy, ptr, len);
	copy[len] = '\0';
	return (struct slice){ copy, len };
}

static struct json_value *
add_value(struct parser *p, enum json_type type)
{
	struct json_value *v = json_alloc(p->doc, sizeof(*v));
	struct level *l = p->depth ? &p->levels[p->depth - 1] : NULL;

	*v = (struct json_value){ .type = type };
	if (l == NULL) {
		p->doc->root = v;
		if (type != JSON_ARRAY && type != JSON_OBJECT)
			p->root_end = offset_now(p);
		return v;
	}
	v->key = l->key;
	if (l->last != NULL)
		l->last->next = v;
	else
		l->value->first = v;
	l->last = v;
	l->value->count++;
	return v;
}

static int
on_null(void *ctx)
{
	add_value(ctx, JSON_NULL);
	return 1;
}

static int
on_boolean(void *ctx, int value)
{
	add_value(ctx, JSON_BOOL)->boolean = value != 0;
	return 1;
}

static int
on_number(void *ctx, const char *text, size_t len)
{
	struct json_value *v = add_value(ctx, JSON_NUMBER);

	v->text = keep(ctx, text, len);
	return 1;
}

static int
on_string(void *ctx, const unsigned char *text, size_t len)
{
	struct json_value *v = add_value(ctx, JSON_STRING);

	v->text = keep(ctx, text, len);
	return 1;
}

static int
open_container(struct parser *p, enum json_type type)
{
	struct json_value *v;

	if (p->depth == JSON_MAX_DEPTH) {
		fail_at(p, offset_now(p), "recursion limit exceeded");
		return 0;
	}
	v = add_value(p, type);
	p->levels[p->depth++] = (struct level){ .value = v };
	return 1;
}

static int
close_container(void *ctx)
{
	struct parser *p = ctx;

	table_clear(&p->levels[--p->depth].keys);
	if (p->depth == 0)
		p->root_end = offset_now(p);
	return 1;
}

static int
on_start_map(void *ctx)
{
	return open_container(ctx, JSON_OBJECT);
}

static int
on_start_array(void *ctx)
{
	return open_container(ctx, JSON_ARRAY);
}

static bool
match_key(const struct table_node *node, const void *key)
{
	return slice_equal(TABLE_OBJECT(node, const struct key_node, node)->key,
	    *(const struct slice *)key);
}

static void
remember_key(struct parser *p, struct level *l, struct slice key)
{
	struct key_node *k = json_alloc(p->doc, sizeof(*k));

	k->key = key;
	table_insert(&l->keys, &k->node, siphash_bytes(key.ptr, key.len));
}

/* A hostile object may have millions of members. From KEYS_BY_HASH members on
 * they are searched by a keyed hash, so that nobody can choose keys that
 * collide. */
static bool
is_duplicate(struct parser *p, struct level *l, struct slice key)
{
	if (l->value->count < KEYS_BY_HASH) {
		for (struct json_value *v = l->value->first; v; v = v->next)
			if (slice_equal(v->key, key))
				return true;
		return false;
	}
	if (l->keys.count == 0)
		for (struct json_value *v = l->value->first; v; v = v->next)
			remember_key(p, l, v->key);
	if (table_find(&l->keys, siphash_bytes(key.ptr, key.len), match_key,
		&key) != NULL)
		return true;
	remember_key(p, l, key);
	return false;
}

static int
on_map_key(void *ctx, const unsigned char *text, size_t len)
{
	struct parser *p = ctx;
	struct level *l = &p->levels[p->depth - 1];
	char what[96];

	l->key = keep(p, text, len);
	if (!is_duplicate(p, l, l->key))
		return 1;
	snprintf(what, sizeof(what), "duplicate JSON object key `%.*s`",
	    (int)(l->key.len < 48 ? l->key.len : 48), l->key.ptr);
	fail_at(p, offset_now(p), what);
	return 0;
}

const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_map_key,
	.yajl_end_map = close_container,
	.yajl_start_array = on_start_array,
	.yajl_end_array = close_container,
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_at_end(const struct parser *p, size_t offset)
{
	while (offset < p->len && is_blank(p->text[offset]))
		offset++;
	return offset == p->len;
}

/* Translates an error of yajl into the words of the peer. */
static void
explain(struct parser *p, size_t offset, bool at_end)
{
	const struct level *l = p->depth ? &p->levels[p->depth - 1] : NULL;

	if (p->doc->error[0] != '\0')
		return;
	if (p->root_end > 0) {
		offset = p->root_end;
		while (offset < p->len && is_blank(p->text[offset]))
			offset++;
		fail_at(p, offset + 1, "trailing characters");
	} else if (at_end && l == NULL) {
		fail_at(p, p->len, "EOF while parsing a value");
	} else if (at_end) {
		fail_at(p, p->len,
		    l->value->type == JSON_OBJECT
			? "EOF while parsing an object"
			: "EOF while parsing a list");
	} else {
		fail_at(p, offset == 0 ? 1 : offset, "expected value");
	}
}

/* --- one text ----------------------------------------------------------- */

static int
fail_run(struct parser *p, size_t offset, const char *what)
{
	fail_at(p, offset, what);
	return -EBADMSG;
}

/* Gives a piece of the text to yajl. */
static int
feed(struct parser *p, size_t from, size_t to)
{
	p->piece = from;
	if (yajl_parse(p->handle, (const unsigned char *)p->text + from,
		to - from) == yajl_status_ok)
		return 0;
	explain(p, offset_now(p), is_at_end(p, 0));
	return -EBADMSG;
}

static int
feed_pieces(struct parser *p)
{
	size_t at = 0;
	int err = 0;

	for (size_t i = 0; i < p->cuts.count && err == 0; i++) {
		err = feed(p, at, p->cuts.cut[i].from);
		at = p->cuts.cut[i].to;
		p->whole = &p->cuts.cut[i];
	}
	return err < 0 ? err : feed(p, at, p->len);
}

static int
run(struct parser *p)
{
	size_t bad = json_scan_utf8(&p->cuts, p->text, p->len);

	if (bad < p->len)
		return fail_run(p, bad + 1, "invalid unicode code point");
	bad = json_scan_surrogates(&p->cuts, p->text, p->len);
	if (bad < p->len)
		return fail_run(p, bad + 6, "unexpected end of hex escape");
	if (feed_pieces(p) < 0)
		return -EBADMSG;
	/* Errors that appear only now are reported at the end of the text. */
	if ((p->len > 0 && yajl_complete_parse(p->handle) != yajl_status_ok) ||
	    p->doc->root == NULL || p->depth > 0) {
		explain(p, p->len, true);
		return -EBADMSG;
	}
	bad = json_scan_blanks(&p->cuts, p->text, p->len);
	return bad < p->len ? fail_run(p, bad + 1, "expected value") : 0;
}

int
json_parse(struct json_doc *doc, const char *text, size_t len)
{
	struct parser p = { .doc = doc, .text = text, .len = len };
	yajl_alloc_funcs memory = json_memory;
	int err;

	*doc = (struct json_doc){ 0 };
	p.handle = yajl_alloc(&callbacks, &memory, &p);
	json_scan_plan(&p.cuts, text, len);
	err = run(&p);
	yajl_free(p.handle);
	while (p.depth > 0)
		table_clear(&p.levels[--p.depth].keys);
	if (err < 0)
		json_clear(doc);
	return err;
}

/* --- values ------------------------------------------------------------- */

/*
 * Reads a tree: members by name, and numbers in range.
 */

const struct json_value *
json_get(const struct json_value *object, const char *key)
{
	size_t n = strlen(key);

	if (object == NULL || object->type != JSON_OBJECT)
		return NULL;
	for (const struct json_value *v = object->first; v; v = v->next)
		if (v->key.len == n && !memcmp(v->key.ptr, key, n))
			return v;
	return NULL;
}

bool
json_is(const struct json_value *string, const char *text)
{
	size_t n = strlen(text);

	return string != NULL && string->type == JSON_STRING &&
	       string->text.len == n && !memcmp(string->text.ptr, text, n);
}

/* Parses digits only. Returns 0, or -ERANGE. */
static int
parse_digits(const char *s, size_t n, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (n == 0)
		return -ERANGE;
	for (size_t i = 0; i < n; i++) {
		unsigned digit = (unsigned char)s[i] - '0';

		if (digit > 9 || v > (max - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*out = v;
	return 0;
}

int
json_to_u64(const struct json_value *v, uint64_t *out)
{
	if (v->type != JSON_NUMBER)
		return -ERANGE;
	return parse_digits(v->text.ptr, v->text.len, UINT64_MAX, out);
}

int
json_to_i64(const struct json_value *v, int64_t *out)
{
	bool negative;
	uint64_t u;

	if (v->type != JSON_NUMBER)
		return -ERANGE;
	negative = v->text.len > 0 && v->text.ptr[0] == '-';
	if (parse_digits(v->text.ptr + negative, v->text.len - negative,
		(uint64_t)INT64_MAX + negative, &u) < 0)
		return -ERANGE;
	/* The peer takes minus zero for a floating-point number. */
	if (negative && u == 0)
		return -ERANGE;
	*out = negative ? (int64_t)(0 - u) : (int64_t)u;
	return 0;
}
