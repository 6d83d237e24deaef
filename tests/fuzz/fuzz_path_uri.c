/* SPDX-License-Identifier: ISC */
/*
 * path_uri: a path is absolute and clean, and written as a URI it is read as
 * the same path again. The input is the URI.
 */
#include "json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void
check_written(const struct buf *b)
{
	assert(!b->failed && b->len >= 8);
	assert(memcmp(b->data, "file:///", 8) == 0);
	for (size_t i = 0; i < b->len; i++) {
		assert(b->data[i] > ' ' && b->data[i] < 0x7f);
		assert(b->data[i] != '"' && b->data[i] != '\\');
	}
}

static void
check_again(struct json_doc *doc, const struct path_uri *p)
{
	struct path_uri again;
	char error[512];
	struct buf b;

	buf_init(&b, 8 + strlen(p->path) * 3);
	path_uri_write(&b, p->path);
	check_written(&b);
	assert(path_uri_parse(&again, doc,
		   (struct slice){ (const char *)b.data, b.len }, error,
		   sizeof(error)) == 0);
	check_path(&again);
	assert(!again.foreign && strcmp(again.path, p->path) == 0);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct json_doc doc = { 0 };
	struct path_uri p;
	char error[512];
	int err;

	memset(error, 'x', sizeof(error));
	err = path_uri_parse(&p, &doc,
	    (struct slice){ (const char *)data, len }, error, sizeof(error));
	if (err < 0)
		check_error(error, sizeof(error));
	else
		check_path(&p);
	if (err == 0 && !p.foreign)
		check_again(&doc, &p);
	json_clear(&doc);
	return 0;
}
