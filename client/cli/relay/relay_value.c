/* SPDX-License-Identifier: ISC */
/*
 * Writes a value of a message as it was parsed. The depth of recursion is
 * bounded by JSON_MAX_DEPTH.
 */
#include "stdio_relay.h"

void
relay_member(struct json_writer *w, const struct json_value *v)
{
	json_slice_key(w, v->key);
	relay_value(w, v);
}

static void
write_children(struct json_writer *w, const struct json_value *v)
{
	bool object = v->type == JSON_OBJECT;

	json_begin(w, object ? '{' : '[');
	for (const struct json_value *c = v->first; c != NULL; c = c->next) {
		if (object)
			relay_member(w, c);
		else
			relay_value(w, c);
	}
	json_end(w, object ? '}' : ']');
}

void
relay_value(struct json_writer *w, const struct json_value *v)
{
	if (v == NULL || v->type == JSON_NULL)
		json_null(w);
	else if (v->type == JSON_BOOL)
		json_bool(w, v->boolean);
	else if (v->type == JSON_NUMBER)
		json_raw(w, v->text.ptr, v->text.len);
	else if (v->type == JSON_STRING)
		json_string(w, v->text.ptr, v->text.len);
	else
		write_children(w, v);
}
