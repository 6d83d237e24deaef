/* SPDX-License-Identifier: ISC */
/*
 * redact: any words, in any place, with any rules; what comes out is marked
 * as often as it is counted, and never longer than it may be.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static unsigned
marks_in(const char *p, size_t n)
{
	const size_t mark = strlen(REDACTED_MARK);
	unsigned count = 0;
	const char *at;

	while (n >= mark && (at = memmem(p, n, REDACTED_MARK, mark)) != NULL) {
		count++;
		n -= (size_t)(at + mark - p);
		p = at + mark;
	}
	return count;
}

/* A word for each line. */
static void
check(const struct redact_rules *rules, const uint8_t *data, size_t len,
    size_t limit)
{
	unsigned before = marks_in((const char *)data, len);
	const char *p = (const char *)data;
	struct redact_state state = { 0 };
	struct buf out;

	buf_init(&out, limit);
	while (len > 0) {
		const char *end = memchr(p, '\n', len);
		size_t n = end != NULL ? (size_t)(end - p) : len;

		redact_word(&state, rules, (struct slice){ p, n }, &out);
		buf_put_u8(&out, '\n');
		n += end != NULL;
		p += n;
		len -= n;
	}
	assert(out.len <= limit);
	/* A mark that was in it already may itself have been a secret. */
	if (!out.failed)
		assert(marks_in((char *)out.data, out.len) >= state.count &&
		       marks_in((char *)out.data, out.len) <=
			   state.count + before);
	buf_clear(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct redact_rules rules;

	redact_rules_init(&rules, "pin\n*_x", "s3cr3t-*\n??");
	check(&rules, data, len, 1 << 20);
	check(&rules, data, len, 100);
	redact_rules_init(&rules, "", "");
	check(&rules, data, len, 1 << 20);
	return 0;
}
