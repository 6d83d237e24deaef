/* SPDX-License-Identifier: ISC */
/*
 * Encodes and decodes a struct by a table of its fields. The reader trusts
 * nothing of what it reads.
 */
#ifndef FIELDS_H
#define FIELDS_H

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

/* With the kind that the member's type has. What is no number is bytes, in the
 * byte order of this machine. */
#define FIELD_OF(type, member)                                                 \
	FIELD(_Generic(((struct type *)0)->member, bool                        \
		       : FIELD_BOOL, uint8_t                                   \
		       : FIELD_U8, uint32_t                                    \
		       : FIELD_U32, uint64_t                                   \
		       : FIELD_U64, default                                    \
		       : FIELD_BYTES),                                         \
	    type, member)

/* Appends the fields of *object in the order of the table. */
void fields_put(struct buf *b, const struct field *fields, size_t count,
    const void *object);

/* Reads them. A value that cannot be is an error of the reader. */
void fields_get(struct buf_reader *r, const struct field *fields, size_t count,
    void *object);

#endif
