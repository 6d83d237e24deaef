/* SPDX-License-Identifier: ISC */
/*
 * intake: a message in pieces is taken for what the whole of it says, with the
 * same content, or is put together again as it was. The first byte chooses the
 * pieces.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "intake.h"
#include "params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static size_t
piece(uint32_t *random, size_t left)
{
	size_t n = 1 + (*random >> 16) % 53;

	*random = *random * 1664525 + 1013904223;
	return n < left ? n : left;
}

/* What was decoded on the way is what the text says. */
static void
check_content(struct slice text, const struct spool *s)
{
	_cleanup_free_ uint8_t *said = xmalloc(base64_decoded_max(text.len));
	_cleanup_free_ uint8_t *got = xmalloc(text.len + 1);
	char error[BASE64_ERROR_MAX];
	ssize_t n = base64_decode(said, text.ptr, text.len, error);

	assert(n >= 0 && s->bytes == (uint64_t)n);
	assert(pread(s->fd, got, text.len + 1, 0) == n);
	assert(n == 0 || memcmp(said, got, (size_t)n) == 0);
}

/* The text is the message, less its content. */
static void
check_text(const struct buf *text, const uint8_t *p, size_t n, size_t content)
{
	size_t i = 0;

	assert(text->len + content == n);
	while (i < text->len && text->data[i] == p[i])
		i++;
	assert(memcmp(text->data + i, p + i + content, text->len - i) == 0);
}

static void
check_taken(struct intake *in, const uint8_t *p, size_t n)
{
	struct spool *s = intake_take_spool(in);
	char error[ARGS_ERROR_MAX];
	union method_params params;
	struct rpc_message m;

	assert(rpc_parse(&m, (const char *)p, n) == 0);
	assert(m.kind == RPC_KIND_REQUEST);
	assert(slice_equal(m.method, SLICE("fs/writeFile")));
	assert(params_decode(params_fs_write_file, &m, &params, error) == 0);
	check_content(params.fs.data, s);
	check_text(intake_text(in), p, n, params.fs.data.len);
	rpc_message_clear(&m);
	spool_free(s);
}

static void
check_restored(struct intake *in, const uint8_t *p, size_t n)
{
	struct buf back;

	buf_init(&back, SIZE_MAX);
	assert(intake_restore(in, &back) == 0);
	assert(back.len == n && memcmp(back.data, p, n) == 0);
	buf_clear(&back);
}

/* All of it, or what was taken. */
static size_t
feed(struct intake *in, const uint8_t *p, size_t at, size_t n, uint32_t random)
{
	while (at < n) {
		size_t want = piece(&random, n - at);
		size_t taken = intake_add(in, p + at, want);

		assert(taken <= want);
		at += taken;
		if (taken < want)
			break;
	}
	return at;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint32_t random = len > 0 ? data[0] * 2654435761u : 0;
	struct intake *in = NULL;
	unsigned spools = 0;
	size_t at = 0;

	if (len < 2)
		return 0;
	data++;
	len--;
	while (in == NULL && at < len) {
		at += piece(&random, len - at);
		in = intake_begin(data, at, 1u << 20, &spools);
	}
	if (in == NULL)
		return 0;
	at = feed(in, data, at, len, random);
	if (at == len && intake_finish(in))
		check_taken(in, data, len);
	else
		check_restored(in, data, at);
	intake_free(in);
	assert(spools == 0);
	return 0;
}
