/* SPDX-License-Identifier: ISC */
/*
 * http: a head is read inside its bounds, whatever follows it; a shorter
 * piece of it says "more" or what the whole says.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static ssize_t
parse_copy(const uint8_t *data, size_t len)
{
	_cleanup_free_ char *copy = xmalloc(len);
	struct http_request r;

	if (len > 0)
		memcpy(copy, data, len);
	return http_parse(&r, copy, len);
}

/* No value may break out of the line that we might write it to. */
static void
check_value(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		assert(s.ptr[i] != '\r' && s.ptr[i] != '\n' && s.ptr[i] != 0);
}

static void
answer(const struct http_request *r)
{
	struct http_reply reply = http_check(r);
	struct slice token;
	struct buf b;

	check_value(r->path);
	check_value(r->key);
	check_value(r->authorization);
	if (r->has_authorization && http_bearer(r->authorization, &token) == 0)
		assert(token.len > 0 && token.len < r->authorization.len);
	assert(!r->origin || reply.status == 403);
	buf_init(&b, 1 << 16);
	if (reply.status == 101)
		http_write_upgrade(&b, r->key);
	else
		http_write_reply(&b, &reply, r->method == HTTP_HEAD);
	assert(!b.failed && b.len > 4);
	assert(memmem(b.data, b.len, "\r\n\r\n", 4) != NULL);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	ssize_t whole = parse_copy(data, len);
	size_t step = len / 64 + 1;
	struct http_request r;

	assert(whole <= (ssize_t)len && whole <= (ssize_t)HTTP_HEAD_MAX);
	for (size_t cut = 0; cut < len; cut += step) {
		ssize_t n = parse_copy(data, cut);

		assert(n == 0 || n == whole);
		assert(n <= (ssize_t)cut);
	}
	if (http_parse(&r, (const char *)data, len) > 0)
		answer(&r);
	return 0;
}
