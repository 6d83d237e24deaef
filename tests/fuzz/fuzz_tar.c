/* SPDX-License-Identifier: ISC */
/*
 * tar: what a server sends as an archive. Content belongs to an entry, and
 * comes to the same in whatever pieces the bytes arrive. The first byte of the
 * input is the size of a piece.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct seen {
	struct buf b; /* what happened, one after the other */
	bool inside;
};

static void
on_entry(void *arg, enum tar_type type, const char *name)
{
	struct seen *s = arg;

	assert(!s->inside && strlen(name) <= TAR_NAME_MAX);
	s->inside = true;
	buf_printf(&s->b, "\n%c%s\n", (char)type, name);
}

static void
on_content(void *arg, const void *data, size_t len)
{
	struct seen *s = arg;

	assert(s->inside && len > 0);
	buf_put(&s->b, data, len);
}

static void
on_end(void *arg)
{
	struct seen *s = arg;

	assert(s->inside);
	s->inside = false;
	buf_puts(&s->b, "\n.");
}

static int
read_all(struct seen *s, const uint8_t *data, size_t len, size_t piece)
{
	struct tar_reader *r = xcalloc(1, sizeof(*r));
	int err = 0;

	buf_init(&s->b, SIZE_MAX / 2);
	r->entry = on_entry;
	r->content = on_content;
	r->end = on_end;
	r->arg = s;
	for (size_t at = 0; at < len && err == 0; at += piece)
		err =
		    tar_read(r, data + at, len - at < piece ? len - at : piece);
	free(r);
	return err;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct seen whole = { 0 }, pieces = { 0 };
	int err;

	if (len < 2)
		return 0;
	err = read_all(&whole, data + 1, len - 1, len);
	assert(read_all(&pieces, data + 1, len - 1, data[0] + 1u) == err);
	assert(whole.inside == pieces.inside && whole.b.len == pieces.b.len);
	assert(whole.b.len == 0 ||
	       memcmp(whole.b.data, pieces.b.data, whole.b.len) == 0);
	buf_clear(&whole.b);
	buf_clear(&pieces.b);
	return 0;
}
