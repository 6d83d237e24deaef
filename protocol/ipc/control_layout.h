/* SPDX-License-Identifier: ISC */
/*
 * How the messages of the control channels are laid out: field by field, in
 * tables. Of control.c and the files with the tables only.
 */
#ifndef CONTROL_LAYOUT_H
#define CONTROL_LAYOUT_H

#include "control.h"
#include "util.h"

enum field_kind {
	FIELD_BOOL,
	FIELD_U8,
	FIELD_U32,
	FIELD_U64,
	FIELD_BYTES,
	FIELD_STRING
};

struct field {
	enum field_kind kind;
	size_t offset;
	size_t size;
};

#define FIELD(kind, type, member)                                              \
	{                                                                      \
		kind, offsetof(struct type, member),                           \
		    sizeof(((struct type *)0)->member)                         \
	}

struct control_layout {
	enum control_type type;
	const char *name;
	const struct field *fields; /* in the order of the wire */
	size_t count;
	bool first; /* of a side of its channel: a version comes before */
};

#define LAYOUT(type, fields)                                                   \
	{                                                                      \
		type, #type, fields, nitems(fields), false                     \
	}
#define EMPTY(type)                                                            \
	{                                                                      \
		type, #type, NULL, 0, false                                    \
	}
#define FIRST_LAYOUT(type, fields)                                             \
	{                                                                      \
		type, #type, fields, nitems(fields), true                      \
	}
#define FIRST_EMPTY(type)                                                      \
	{                                                                      \
		type, #type, NULL, 0, true                                     \
	}

struct control_layouts {
	const struct control_layout *rows;
	size_t count;
	uint32_t version, oldest; /* that is spoken (control_version.h) */
};

/* No type is in two of them. */
extern const struct control_layouts control_layouts_frontend;
extern const struct control_layouts control_layouts_runner;
extern const struct control_layouts control_layouts_spawn;

/* Those that this program speaks, then NULL: every one, unless the program
 * defines it itself. */
extern const struct control_layouts *const control_layouts_all[];

#endif
