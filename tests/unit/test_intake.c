/* SPDX-License-Identifier: ISC */
/*
 * intake: however a message is cut, it becomes its text and its content, or
 * it is put together again as it was, byte for byte.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base64.h"
#include "intake.h"
#include "util.h"

#define BEFORE                                                                 \
	"{\"id\":1,\"method\":\"fs/writeFile\",\"params\":{\"path\":"          \
	"\"file:///x\",\"dataBase64\":\""
#define AFTER	      "\"}}"
#define CONTENT_BYTES 300000
#define LIMIT	      (1u << 20)

static uint8_t content[CONTENT_BYTES];
static unsigned spools;

/* `n` bytes of content, then this tail and end. */
static struct buf
make(size_t n, const char *tail, const char *end)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_puts(&b, BEFORE);
	buf_commit(
	    &b, base64_encode((char *)buf_reserve(&b, base64_encoded_len(n)),
		    content, n));
	buf_puts(&b, tail);
	buf_puts(&b, end);
	return b;
}

static size_t
piece(uint32_t *random, size_t left)
{
	static const size_t sizes[] = { 1, 2, 3, 5, 16, 17, 19, 1000, 65536,
		200000 };
	size_t n;

	*random = *random * 1664525 + 1013904223;
	n = sizes[(*random >> 16) % nitems(sizes)];
	return n < left ? n : left;
}

/* In pieces. True: it was taken; false: it was restored and compared. */
static bool
take(const struct buf *text, uint32_t random, struct intake **in)
{
	size_t at = sizeof(BEFORE) - 1 + random % 50, n = 0;
	struct buf back;

	*in = intake_begin(text->data, at, LIMIT, &spools);
	assert_non_null(*in);
	for (; at < text->len; at += n) {
		size_t want = piece(&random, text->len - at);

		n = intake_add(*in, text->data + at, want);
		assert_true(n <= want);
		if (n < want)
			break;
	}
	if (at == text->len && intake_finish(*in))
		return true;
	at += at < text->len ? n : 0;
	buf_init(&back, SIZE_MAX);
	assert_int_equal(intake_restore(*in, &back), 0);
	assert_int_equal(back.len, at);
	assert_memory_equal(back.data, text->data, at);
	buf_clear(&back);
	return false;
}

static void
check_content(struct intake *in, size_t n)
{
	struct spool *s = intake_take_spool(in);
	uint8_t *got = xmalloc(n + 1);

	assert_int_equal(s->bytes, n);
	assert_int_equal(pread(s->fd, got, n + 1, 0), n);
	assert_memory_equal(got, content, n);
	free(got);
	spool_free(s);
	assert_int_equal(intake_text(in)->len, strlen(BEFORE AFTER));
	assert_memory_equal(
	    intake_text(in)->data, BEFORE AFTER, strlen(BEFORE AFTER));
}

static void
test_taken(void **state)
{
	for (uint32_t i = 0; i < 60; i++) {
		size_t n = CONTENT_BYTES - i % 7;
		struct buf text = make(n, "", AFTER);
		struct intake *in;

		/* Padding alone in a piece may be taken for something odd. */
		if (take(&text, i * 2654435761u, &in))
			check_content(in, n);
		else
			assert_int_not_equal(n % 3, 0);
		intake_free(in);
		buf_clear(&text);
	}
	assert_int_equal(spools, 0);
}

static void
test_restored(void **state)
{
	static const struct {
		const char *tail, *end;
	} odd[] = {
		{ "!", AFTER },
		{ "A", AFTER },
		{ "AB==", AFTER },
		{ "AA==AAAA", AFTER },
		{ "AA=A", AFTER },
		{ "\\/AAA", AFTER },
		{ "AA\\u0041A", AFTER },
		{ "\xc3\xbc", AFTER },
		{ "", "\"}}x" },
		{ "", "\"}" },
		{ "", "\",\"dataBase64\":\"\"}}" },
		{ "", "\"},\"method\":\"fs/writeFile\"}" },
		{ "", "\",\"sandbox\":1}}" },
		{ "", "" },
	};

	for (uint32_t i = 0; i < nitems(odd); i++)
		for (uint32_t k = 0; k < 10; k++) {
			struct buf text = make(
			    CONTENT_BYTES / 3 * 3, odd[i].tail, odd[i].end);
			struct intake *in;

			assert_false(take(&text, k * 2654435761u + i, &in));
			intake_free(in);
			buf_clear(&text);
		}
	assert_int_equal(spools, 0);
}

static void
test_others(void **state)
{
	const char *text = "{\"id\":1,\"method\":\"fs/writeBlock\","
			   "\"params\":{\"dataBase64\":\"";

	assert_null(intake_begin(text, strlen(text), 4096, &spools));
	assert_null(intake_begin(BEFORE "!AAAAAAAAAAAAAAAAAAAAAAAAA",
	    strlen(BEFORE) + 26, 4096, &spools));
	assert_int_equal(spools, 0);
}

/* What comes after the content counts as well, and is not cut off. */
static void
test_limit(void **state)
{
	const char *begin = BEFORE "AAAA\"";
	char more[200];
	struct intake *in =
	    intake_begin(begin, strlen(begin), sizeof(more), &spools);
	struct buf back;

	assert_non_null(in);
	memset(more, ' ', sizeof(more));
	assert_int_equal(intake_add(in, more, sizeof(more)), sizeof(more));
	assert_int_equal(intake_add(in, "}}", 2), 2);
	assert_false(intake_finish(in));
	buf_init(&back, SIZE_MAX);
	assert_int_equal(intake_restore(in, &back), -EMSGSIZE);
	buf_clear(&back);
	intake_free(in);
	assert_int_equal(spools, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_restored),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_limit),
	};

	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * 2654435761u >> 13);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
