/* SPDX-License-Identifier: ISC */
/*
 * TOML 1.0, read into a tree and written again: files that belong to the
 * session's user, of which a client is told parts. Values that are no strings
 * keep the text they had.
 */
#ifndef TOML_H
#define TOML_H

#include "json.h"

#define TOML_VALUES_MAX 10000 /* keys and members of arrays in one file */
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
	struct slice key;  /* when member of a table */
	struct slice text; /* TOML_STRING decoded, TOML_LITERAL as it came */
	struct toml_value *first, *last, *next;
	bool defined; /* by a header, or a value: not to be defined again */
	bool dotted;  /* a table made by a key: headers do not define it */
	bool closed;  /* { a = 1 } and [1]: nothing may be added later */
	bool headers; /* an array of [[headers]] */
	bool picked;  /* toml_pick(): itself, with all that is in it */
	bool passed;  /* toml_pick(): on the way to one that is picked */
};

struct toml_doc {
	struct json_doc arena;
	struct toml_value root;
	unsigned values;
	unsigned line, column; /* of the error */
	char error[TOML_ERROR_MAX];
};

/* 0, or -EBADMSG with the error; end with toml_clear() in either case. */
int toml_parse(struct toml_doc *doc, const char *text, size_t len);
void toml_clear(struct toml_doc *doc);

/* Marks what a path of keys leads to. A value that is no table ends the path
 * early. False: there is nothing. */
bool toml_pick(struct toml_doc *doc, const struct slice *keys, size_t n);

/* Member of a table, or NULL. */
struct toml_value *toml_get(const struct toml_value *table, struct slice key);

/* Appends what is picked, as TOML. */
void toml_write(struct buf *b, const struct toml_doc *doc);
void toml_write_string(struct buf *b, struct slice text);

#endif
