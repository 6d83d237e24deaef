/* SPDX-License-Identifier: ISC */
/*
 * Encodes and decodes a struct by a table of its fields. The reader trusts
 * nothing of what it reads.
 */
#pragma once

#include <stddef.h>

#include "buf.h"

enum field_kind {
	FIELD_BOOL,
	FIELD_U8,
	FIELD_U32,
	FIELD_U64,
	FIELD_BYTES,
	FIELD_STRING,
	FIELD_PORT,   /* a uint16_t, sent as a u32 */
	FIELD_CHOICE, /* an enum, sent as a u8; its values are below `end` */
};

struct field {
	enum field_kind kind;
	size_t offset;
	size_t size;
	unsigned end; /* FIELD_CHOICE */
};

#define FIELD(kind, type, member)                                              \
	{                                                                      \
		kind, offsetof(struct type, member),                           \
		    sizeof(((struct type *)0)->member), 0                      \
	}

#define FIELD_BELOW(type, member, end)                                         \
	{                                                                      \
		FIELD_CHOICE, offsetof(struct type, member),                   \
		    sizeof(((struct type *)0)->member), end                    \
	}

/* With the kind that the member's type has. What is neither a number nor text
 * is bytes, in the byte order of this machine. */
#define FIELD_OF(type, member)                                                 \
	FIELD(_Generic(((struct type *)0)->member, bool                        \
		       : FIELD_BOOL, uint8_t                                   \
		       : FIELD_U8, uint32_t                                    \
		       : FIELD_U32, uint64_t                                   \
		       : FIELD_U64, char *                                     \
		       : FIELD_STRING, default                                 \
		       : FIELD_BYTES),                                         \
	    type, member)

/* FIELD_OF() of 1 to 16 members of one struct. */
#define FIELDS(type, ...)                                                      \
	FIELDS_PICK(__VA_ARGS__, FIELDS_16, FIELDS_15, FIELDS_14, FIELDS_13,   \
	    FIELDS_12, FIELDS_11, FIELDS_10, FIELDS_9, FIELDS_8, FIELDS_7,     \
	    FIELDS_6, FIELDS_5, FIELDS_4, FIELDS_3, FIELDS_2, FIELDS_1, 0)     \
	(type, __VA_ARGS__)
#define FIELDS_PICK(                                                           \
    a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, macro, ...)                \
	macro
#define FIELDS_1(t, m)	     FIELD_OF(t, m)
#define FIELDS_2(t, m, ...)  FIELD_OF(t, m), FIELDS_1(t, __VA_ARGS__)
#define FIELDS_3(t, m, ...)  FIELD_OF(t, m), FIELDS_2(t, __VA_ARGS__)
#define FIELDS_4(t, m, ...)  FIELD_OF(t, m), FIELDS_3(t, __VA_ARGS__)
#define FIELDS_5(t, m, ...)  FIELD_OF(t, m), FIELDS_4(t, __VA_ARGS__)
#define FIELDS_6(t, m, ...)  FIELD_OF(t, m), FIELDS_5(t, __VA_ARGS__)
#define FIELDS_7(t, m, ...)  FIELD_OF(t, m), FIELDS_6(t, __VA_ARGS__)
#define FIELDS_8(t, m, ...)  FIELD_OF(t, m), FIELDS_7(t, __VA_ARGS__)
#define FIELDS_9(t, m, ...)  FIELD_OF(t, m), FIELDS_8(t, __VA_ARGS__)
#define FIELDS_10(t, m, ...) FIELD_OF(t, m), FIELDS_9(t, __VA_ARGS__)
#define FIELDS_11(t, m, ...) FIELD_OF(t, m), FIELDS_10(t, __VA_ARGS__)
#define FIELDS_12(t, m, ...) FIELD_OF(t, m), FIELDS_11(t, __VA_ARGS__)
#define FIELDS_13(t, m, ...) FIELD_OF(t, m), FIELDS_12(t, __VA_ARGS__)
#define FIELDS_14(t, m, ...) FIELD_OF(t, m), FIELDS_13(t, __VA_ARGS__)
#define FIELDS_15(t, m, ...) FIELD_OF(t, m), FIELDS_14(t, __VA_ARGS__)
#define FIELDS_16(t, m, ...) FIELD_OF(t, m), FIELDS_15(t, __VA_ARGS__)

/* A table of these members, and its length. */
#define ROW_FIELDS(object, ...)                                                \
	(const struct field[]){ FIELDS(object, __VA_ARGS__) },                 \
	    nitems(((const struct field[]){ FIELDS(object, __VA_ARGS__) }))

/* Appends the fields of *object in the order of the table. */
void fields_put(struct buf *b, const struct field *fields, size_t count,
    const void *object);

/* Reads them. A value that cannot be is an error of the reader. */
void fields_get(struct buf_reader *r, const struct field *fields, size_t count,
    void *object);
