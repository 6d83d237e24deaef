/* SPDX-License-Identifier: ISC */
/*
 * The layout of the messages on the control channels: tables that list the
 * fields of each message. For control.c and the files with the tables only.
 */
#pragma once

#include "control.h"
#include "fields.h"
#include "util.h"

struct control_layout {
	enum control_type type;
	const char *name;
	const struct field *fields; /* in the order in which they are sent */
	size_t count;
	/* the first message of one side of a channel, which carries a
	 * version */
	bool first;
};

/* The message `type` is these members of a struct, in this order. */
#define LAYOUT(type, object, ...)                                              \
	{                                                                      \
		type, #type, ROW_FIELDS(object, __VA_ARGS__), false            \
	}
#define FIRST_LAYOUT(type, object, ...)                                        \
	{                                                                      \
		type, #type, ROW_FIELDS(object, __VA_ARGS__), true             \
	}

/* It is the fields of a table that it shares, or that is longer. */
#define LAYOUT_OF(type, fields)                                                \
	{                                                                      \
		type, #type, fields, nitems(fields), false                     \
	}
#define FIRST_LAYOUT_OF(type, fields)                                          \
	{                                                                      \
		type, #type, fields, nitems(fields), true                      \
	}
#define EMPTY(type)                                                            \
	{                                                                      \
		type, #type, NULL, 0, false                                    \
	}
#define FIRST_EMPTY(type)                                                      \
	{                                                                      \
		type, #type, NULL, 0, true                                     \
	}

struct control_layouts {
	const struct control_layout *rows;
	size_t count;
	/* versions that are understood (control_version.h) */
	uint32_t version, oldest;
};

/* No type is in two of these tables. */
extern const struct control_layouts control_layouts_frontend;
extern const struct control_layouts control_layouts_runner;
