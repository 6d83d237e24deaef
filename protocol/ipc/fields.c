/* SPDX-License-Identifier: ISC */
#include "fields.h"

static void
put_field(struct buf *b, const struct field *f, const uint8_t *at)
{
	uint32_t u32;
	uint64_t u64;

	switch (f->kind) {
	case FIELD_BOOL:
		buf_put_u8(b, *(const bool *)at);
		break;
	case FIELD_U8:
		buf_put_u8(b, *at);
		break;
	case FIELD_U32:
		memcpy(&u32, at, sizeof(u32));
		buf_put_u32(b, u32);
		break;
	case FIELD_U64:
		memcpy(&u64, at, sizeof(u64));
		buf_put_u64(b, u64);
		break;
	case FIELD_BYTES:
		buf_put(b, at, f->size);
		break;
	case FIELD_PORT:
		buf_put_u32(b, *(const uint16_t *)(const void *)at);
		break;
	case FIELD_CHOICE:
		memcpy(&u32, at, sizeof(u32));
		buf_put_u8(b, (uint8_t)u32);
		break;
	case FIELD_STRING:
		buf_put_string(b, (const char *)at,
		    strnlen((const char *)at, f->size - 1));
		break;
	}
}

void
fields_put(
    struct buf *b, const struct field *fields, size_t count, const void *object)
{
	for (size_t i = 0; i < count; i++)
		put_field(
		    b, &fields[i], (const uint8_t *)object + fields[i].offset);
}

/* Returns a number below `end`. */
static uint32_t
checked(struct buf_reader *r, uint32_t n, uint32_t end)
{
	if (n >= end)
		r->failed = true;
	return n;
}

static void
get_field(struct buf_reader *r, const struct field *f, uint8_t *at)
{
	uint32_t u32;
	uint64_t u64;

	switch (f->kind) {
	case FIELD_BOOL:
		*(bool *)at = checked(r, buf_get_u8(r), 2) == 1;
		break;
	case FIELD_U8:
		*at = buf_get_u8(r);
		break;
	case FIELD_U32:
		u32 = buf_get_u32(r);
		memcpy(at, &u32, sizeof(u32));
		break;
	case FIELD_U64:
		u64 = buf_get_u64(r);
		memcpy(at, &u64, sizeof(u64));
		break;
	case FIELD_BYTES:
		buf_get(r, at, f->size);
		break;
	case FIELD_PORT:
		u32 = checked(r, buf_get_u32(r), UINT16_MAX + 1);
		*(uint16_t *)(void *)at = (uint16_t)u32;
		break;
	case FIELD_CHOICE:
		u32 = checked(r, buf_get_u8(r), f->end);
		memcpy(at, &u32, sizeof(u32));
		break;
	case FIELD_STRING:
		buf_get_string(r, (char *)at, f->size);
		break;
	}
}

void
fields_get(struct buf_reader *r, const struct field *fields, size_t count,
    void *object)
{
	for (size_t i = 0; i < count; i++)
		get_field(r, &fields[i], (uint8_t *)object + fields[i].offset);
}
