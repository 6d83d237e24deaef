/* SPDX-License-Identifier: ISC */
/*
 * Makes a tree of the events of libyaml. Only this file uses libyaml. It takes
 * the events, because libyaml's own tree has no limits and aliases make it a
 * graph.
 */
#include "yaml_tree.h"

#include <yaml.h>

struct reader {
	struct yaml_doc *doc;
	const char *text;
	yaml_parser_t parser;
	yaml_event_t event; /* the last that was read */
	unsigned depth;
	bool failed;
};

/* --- Errors --------------------------------------------------------------- */

/* Notes the error and its place. Only the first error is noted. */
static void __attribute__((format(printf, 3, 4)))
fail(struct reader *r, yaml_mark_t place, const char *fmt, ...)
{
	struct yaml_doc *d = r->doc;
	va_list ap;

	if (r->failed)
		return;
	r->failed = true;
	d->line = (unsigned)place.line + 1;
	d->column = (unsigned)place.column + 1;
	va_start(ap, fmt);
	vsnprintf(d->error, sizeof(d->error), fmt, ap);
	va_end(ap);
}

/* libyaml names a byte that may not be in the text by its offset only. */
static yaml_mark_t
place_of(const struct reader *r, size_t offset)
{
	yaml_mark_t place = { 0 };

	for (size_t i = 0; i < offset; i++) {
		place.line += r->text[i] == '\n';
		place.column = r->text[i] == '\n' ? 0 : place.column + 1;
	}
	return place;
}

/* Goes to the next event. Returns false if there is none: after an error. */
static bool
next(struct reader *r)
{
	const yaml_parser_t *p = &r->parser;

	yaml_event_delete(&r->event);
	if (r->failed || yaml_parser_parse(&r->parser, &r->event) != 0)
		return !r->failed;
	if (p->problem == NULL)
		fail(r, p->mark, "no memory");
	else if (p->error == YAML_READER_ERROR)
		fail(r, place_of(r, p->problem_offset), "%s", p->problem);
	else
		fail(r, p->problem_mark, "%s", p->problem);
	return false;
}

/* --- Values --------------------------------------------------------------- */

static struct yaml_value *take_value(struct reader *r);

static struct yaml_value *
new_value(struct reader *r, enum yaml_type type)
{
	struct yaml_value *v = json_alloc(&r->doc->arena, sizeof(*v));

	if (++r->doc->values > YAML_VALUES_MAX)
		fail(r, r->event.start_mark, "over %d values in one file",
		    YAML_VALUES_MAX);
	*v = (struct yaml_value){ .type = type, .text = { "", 0 } };
	return v;
}

static void
add(struct yaml_value *to, struct yaml_value *v)
{
	if (to->last != NULL)
		to->last->next = v;
	else
		to->first = v;
	to->last = v;
}

static struct yaml_value *
take_scalar(struct reader *r)
{
	struct yaml_value *v = new_value(r, YAML_SCALAR);
	size_t len = r->event.data.scalar.length;
	char *copy = json_alloc(&r->doc->arena, len + 1);

	memcpy(copy, r->event.data.scalar.value, len);
	v->text = (struct slice){ copy, len };
	v->plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	return v;
}

static struct yaml_value *
take_sequence(struct reader *r)
{
	struct yaml_value *v = new_value(r, YAML_SEQUENCE);

	while (next(r) && r->event.type != YAML_SEQUENCE_END_EVENT)
		add(v, take_value(r));
	return v;
}

static struct yaml_value *
take_mapping(struct reader *r)
{
	struct yaml_value *v = new_value(r, YAML_MAPPING), *key, *member;

	while (next(r) && r->event.type != YAML_MAPPING_END_EVENT) {
		yaml_mark_t place = r->event.start_mark;

		key = take_value(r);
		if (key->type != YAML_SCALAR)
			fail(r, place, "a key that is no scalar");
		if (!next(r))
			break;
		member = take_value(r);
		member->key = key->text;
		add(v, member);
	}
	return v;
}

/* Returns whether a value has an anchor or a tag, or is an alias. */
static bool
is_marked(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return e->data.scalar.anchor != NULL ||
		       e->data.scalar.tag != NULL;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.anchor != NULL ||
		       e->data.sequence_start.tag != NULL;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.anchor != NULL ||
		       e->data.mapping_start.tag != NULL;
	default:
		return true;
	}
}

/* Takes the value that the last event begins. */
static struct yaml_value *
take_value(struct reader *r)
{
	yaml_mark_t place = r->event.start_mark;
	struct yaml_value *v;

	if (is_marked(&r->event))
		fail(r, place, "anchors, aliases and tags are not read");
	if (++r->depth > YAML_DEPTH_MAX)
		fail(r, place, "over %d values inside each other",
		    YAML_DEPTH_MAX);
	if (r->event.type == YAML_SEQUENCE_START_EVENT)
		v = take_sequence(r);
	else if (r->event.type == YAML_MAPPING_START_EVENT)
		v = take_mapping(r);
	else if (r->event.type == YAML_SCALAR_EVENT)
		v = take_scalar(r);
	else
		v = new_value(r, YAML_SCALAR);
	r->depth--;
	return v;
}

/* --- The document --------------------------------------------------------- */

static void
take_document(struct reader *r)
{
	const yaml_event_t *e = &r->event;

	if (e->data.document_start.version_directive != NULL ||
	    e->data.document_start.tag_directives.start !=
		e->data.document_start.tag_directives.end)
		fail(r, e->start_mark, "directives are not read");
	if (next(r))
		r->doc->root = take_value(r);
	/* The end of the document, and what is behind it. */
	if (next(r) && next(r) && e->type == YAML_DOCUMENT_START_EVENT)
		fail(r, e->start_mark, "more than one document");
}

int
yaml_parse(struct yaml_doc *doc, const char *text, size_t len)
{
	struct reader r = { .doc = doc, .text = len > 0 ? text : "" };

	*doc = (struct yaml_doc){ 0 };
	if (yaml_parser_initialize(&r.parser) == 0)
		fail(&r, r.parser.mark, "no memory");
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(
	    &r.parser, (const unsigned char *)r.text, len);
	/* The first event is the beginning of the text. */
	if (next(&r) && next(&r) && r.event.type == YAML_DOCUMENT_START_EVENT)
		take_document(&r);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.parser);
	return r.failed ? -EBADMSG : 0;
}

void
yaml_clear(struct yaml_doc *doc)
{
	json_clear(&doc->arena);
}

const struct yaml_value *
yaml_get(const struct yaml_value *mapping, const char *key, bool *again)
{
	const struct yaml_value *found = NULL;

	for (const struct yaml_value *v = mapping->first; v; v = v->next)
		if (slice_equal(v->key, slice_of(key))) {
			*again |= found != NULL;
			if (found == NULL)
				found = v;
		}
	return found;
}

static bool
is_nothing(const struct yaml_value *v)
{
	return v->type == YAML_SCALAR && v->plain && v->text.len == 0;
}

bool
yaml_is_null(const struct yaml_value *v)
{
	return is_nothing(v) || (v->type == YAML_SCALAR && v->plain &&
				    (slice_equal(v->text, SLICE("~")) ||
					slice_equal(v->text, SLICE("null")) ||
					slice_equal(v->text, SLICE("Null")) ||
					slice_equal(v->text, SLICE("NULL"))));
}

bool
yaml_is_mapping(const struct yaml_value *v)
{
	return v->type == YAML_MAPPING || is_nothing(v);
}

bool
yaml_is_sequence(const struct yaml_value *v)
{
	return v->type == YAML_SEQUENCE || is_nothing(v);
}
