/* SPDX-License-Identifier: ISC */
/*
 * json: how deep a text may sandbox, a key twice among few and many members
 * (doc/protocol.md section 2.3), and no memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "json.h"
#include "json_memory.h"
#include "json_text.h"

#define DUPLICATE "duplicate JSON object key "

/* `depth` containers, arrays and objects by turns. */
static void
put_nested(struct buf *b, size_t depth, bool closed)
{
	for (size_t i = 0; i < depth; i++)
		buf_puts(b, i % 2 ? "{\"a\":" : "[");
	if (!closed)
		return;
	buf_puts(b, "1");
	for (size_t i = depth; i-- > 0;)
		buf_puts(b, i % 2 ? "}" : "]");
}

static void
check_depth(size_t depth, bool closed, const char *error)
{
	struct json_doc doc;
	struct buf b;
	int r;

	buf_init(&b, 1u << 20);
	put_nested(&b, depth, closed);
	r = json_parse(&doc, (const char *)b.data, b.len);
	if (error == NULL ? r != 0 || doc.error[0] != '\0'
			  : r != -EBADMSG || !error_matches(doc.error, error))
		fail_msg("depth %zu: %d, %s", depth, r, doc.error);
	json_clear(&doc);
	buf_clear(&b);
}

static void
test_depth(void **state)
{
	/* 64 brackets and 63 of `{"a":`, then one too many. */
	static const char limit[] =
	    "recursion limit exceeded at line 1 column 380";

	check_depth(1, true, NULL);
	check_depth(126, true, NULL);
	check_depth(127, true, NULL);
	check_depth(127, false, "EOF ");
	check_depth(128, true, limit);
	check_depth(128, false, limit);
	check_depth(20000, true, limit);
	check_depth(20000, false, limit);
}

/* Depth is what is open, not what was. */
static void
test_depth_is_given_back(void **state)
{
	struct json_doc doc;
	struct buf b;

	buf_init(&b, 1u << 20);
	buf_puts(&b, "[");
	for (int i = 0; i < 500; i++) {
		buf_puts(&b, i ? "," : "");
		put_nested(&b, JSON_MAX_DEPTH - 1, true);
	}
	buf_puts(&b, "]");
	assert_false(b.failed);
	assert_int_equal(json_parse(&doc, (const char *)b.data, b.len), 0);
	assert_int_equal(doc.root->count, 500);
	json_clear(&doc);
	buf_clear(&b);
}

/* An object of n members, then once more the one of that number. */
static void
check_many_keys(size_t n, size_t again, bool escaped)
{
	struct json_doc doc;
	char error[128];
	struct buf b;

	buf_init(&b, 1u << 20);
	for (size_t i = 0; i < n; i++)
		buf_printf(
		    &b, "%c\"key %zu\":{\"a\":%zu}", i ? ',' : '{', i, i);
	if (again < n)
		buf_printf(
		    &b, ",\"%s %zu\"", escaped ? "k\\u0065y" : "key", again);
	snprintf(error, sizeof(error),
	    DUPLICATE "`key %zu` at line 1 column %zu", again, b.len);
	buf_puts(&b, again < n ? ":1}" : "}");
	if (json_parse(&doc, (const char *)b.data, b.len) !=
		(again < n ? -EBADMSG : 0) ||
	    strcmp(doc.error, again < n ? error : "") != 0)
		fail_msg("%zu keys, %zu again: %s", n, again, doc.error);
	assert_true(again < n || doc.root->count == n);
	json_clear(&doc);
	buf_clear(&b);
}

/* Small objects compare, large ones hash: both sides of the border. */
static void
test_many_keys(void **state)
{
	static const size_t counts[] = { 1, 2, 15, 16, 17, 18, 32, 33, 1000 };

	for (size_t i = 0; i < nitems(counts); i++) {
		size_t n = counts[i];

		check_many_keys(n, SIZE_MAX, false);
		for (size_t again = 0; again < n; again += 1 + n / 40) {
			check_many_keys(n, again, false);
			check_many_keys(n, again, true);
		}
		check_many_keys(n, n - 1, false);
	}
}

static void
test_long_duplicate_is_cut(void **state)
{
	char text[1024], key[401];
	struct json_doc doc;

	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	snprintf(text, sizeof(text), "{\"%s\":1,\"%s\":2}", key, key);
	assert_int_equal(json_parse(&doc, text, strlen(text)), -EBADMSG);
	assert_true(error_matches(doc.error, DUPLICATE));
	assert_non_null(strstr(doc.error, " at line 1 column 808"));
	json_clear(&doc);
}

/* Where yajl would write to address 0 the program ends, in words. */
static void
test_no_memory(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		json_memory.malloc(NULL, PTRDIFF_MAX);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_depth_is_given_back),
		cmocka_unit_test(test_many_keys),
		cmocka_unit_test(test_long_duplicate_is_cut),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
