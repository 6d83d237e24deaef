/* SPDX-License-Identifier: ISC */
/*
 * For the tests of params: the values that come out, written as an array.
 */
#pragma once

#include "params_text.h"

/* Params, and the values as an array. */
struct value_row {
	const char *method;
	void (*show)(struct json_writer *w, const union method_params *p);
	const char *params, *shown;
};

static inline void
show_slice(struct json_writer *w, struct slice s)
{
	json_string(w, s.ptr, s.len);
}

static inline void
check_values(const struct value_row *rows, size_t n)
{
	for (const struct value_row *row = rows; row < rows + n; row++) {
		struct json_writer w;
		struct decoded d;
		struct buf b;

		if (decode_params(&d, row->method, row->params) != 0)
			fail_msg(
			    "%s %s: %s", row->method, row->params, d.error);
		buf_init(&b, 4096);
		json_writer_init(&w, &b);
		json_begin(&w, '[');
		row->show(&w, &d.params);
		json_end(&w, ']');
		buf_put_u8(&b, '\0');
		if (strcmp((char *)b.data, row->shown) != 0)
			fail_msg("%s %s: %s, not %s", row->method, row->params,
			    (char *)b.data, row->shown);
		buf_clear(&b);
		decoded_clear(&d);
	}
}
