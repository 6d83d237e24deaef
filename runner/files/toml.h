/* SPDX-License-Identifier: ISC */
/*
 * Reads TOML 1.0 into a tree and writes it again. The files belong to the
 * session's user, and a client is told parts of them. Values that are no
 * strings keep their text.
 */
#pragma once

#include "json.h"

#define TOML_VALUES_MAX 10000 /* keys and array elements of one file */
#define TOML_DEPTH_MAX	64
#define TOML_ERROR_MAX	128

enum toml_type {
	TOML_STRING,
	TOML_LITERAL, /* a number, boolean, date or time */
	TOML_ARRAY,
	TOML_TABLE,
};

struct toml_value {
	enum toml_type type;
	struct slice key;  /* if member of a table */
	struct slice text; /* decoded string; TOML_LITERAL: as in the file */
	struct toml_value *first, *last, *next;
	bool defined; /* by a header or a value; not again */
	bool dotted; /* a table made by a dotted key; no header may define it */
	bool closed; /* { a = 1 } or [1]: nothing may be added */
	bool headers; /* an array made by [[headers]] */
	bool picked;  /* toml_pick(): wanted with all its content */
	bool passed;  /* toml_pick(): on the path to a picked one */
};

struct toml_doc {
	struct json_doc arena;
	struct toml_value root;
	unsigned values;
	unsigned line, column; /* of the error */
	char error[TOML_ERROR_MAX];
};

/*
 * Returns 0, or -EBADMSG with the error in doc. Call toml_clear() in either
 * case.
 */
int toml_parse(struct toml_doc *doc, const char *text, size_t len);
void toml_clear(struct toml_doc *doc);

/*
 * Marks what a path of keys leads to. A value that is no table ends the path
 * early. Returns false if there is nothing.
 */
bool toml_pick(struct toml_doc *doc, const struct slice *keys, size_t n);

/* Returns a member of a table, or NULL. */
struct toml_value *toml_get(const struct toml_value *table, struct slice key);

/* Appends what is picked, as TOML. */
void toml_write(struct buf *b, const struct toml_doc *doc);
void toml_write_string(struct buf *b, struct slice text);
