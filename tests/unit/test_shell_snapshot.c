/* SPDX-License-Identifier: ISC */
/*
 * shell_snapshot: what comes out of a capture, within its limits, and the text
 * that restores it.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shell_snapshot.h"

#define NONCE "aaaabbbbccccddddaaaabbbbccccdddd"
#define MARK  "\0" NONCE "\0"

/* The environment of each capture here. */
static const char began_text[] = "\0HOME=/h\0KEPT=1";

/* Takes a state from bytes; returns shell_snapshot_take()'s answer. */
static int
take(const char *text, size_t len, struct shell_state *state)
{
	struct buf output, began;
	int err;

	buf_init(&output, SIZE_MAX);
	buf_init(&began, SIZE_MAX);
	buf_put(&output, text, len);
	buf_put(&began, began_text, sizeof(began_text));
	*state = (struct shell_state){ .fd = -1 };
	err = shell_snapshot_take(&output, NONCE, &began, state);
	buf_clear(&output);
	buf_clear(&began);
	return err;
}

static void
test_state(void **s)
{
	static const char text[] =
	    "of rc\n" MARK "f () { :; }\n\0HOME=/h\0KEPT=2\0"
	    "NEW=a\nb\0PWD=/\0SHLVL=1\0BASH_FUNC_f%%=() { :; }\0" MARK "trap";
	struct shell_state state;
	char read_back[64] = "";

	assert_int_equal(take(text, sizeof(text) - 1, &state), 0);
	assert_string_equal(state.exports[0], "KEPT=2");
	assert_string_equal(state.exports[1], "NEW=a\nb");
	assert_null(state.exports[2]);
	assert_true(pread(state.fd, read_back, sizeof(read_back) - 1, 0) > 0);
	assert_string_equal(read_back, "exec 3<&-\nf () { :; }\n\n:\n");
	/* A command has it as its descriptor 3 before it closes it. */
	assert_int_equal(pwrite(state.fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(state.fd, 0), -1);
	assert_true(fcntl(state.fd, F_GET_SEALS) & F_SEAL_SEAL);
	shell_state_clear(&state);
	assert_int_equal(state.fd, -1);
}

#define CUT(text)                                                              \
	{                                                                      \
		text, sizeof(text) - 1                                         \
	}

static void
test_cut_off(void **s)
{
	static const struct slice rows[] = { CUT(""), CUT("of rc\n"),
		CUT("\0" NONCE), CUT(MARK), CUT(MARK "f"), CUT(MARK "f\0A=b"),
		CUT(MARK "f\0A=b\0\0" NONCE), CUT(MARK MARK),
		CUT(MARK "f\0" MARK) };
	struct shell_state state;

	for (size_t i = 0; i < nitems(rows); i++) {
		int err = take(rows[i].ptr, rows[i].len, &state);

		assert_int_equal(err, -ENODATA);
		shell_state_clear(&state);
	}
}

/* n strings of `size` bytes with their NULs. */
static int
take_exports(size_t n, size_t size)
{
	struct shell_state state;
	struct buf b;
	int err;

	buf_init(&b, SIZE_MAX);
	buf_put(&b, MARK "\0", sizeof(MARK));
	for (size_t i = 0; i < n; i++) {
		uint8_t *at = buf_reserve(&b, size);

		memset(at, 'x', size);
		at[1] = '=';
		at[size - 1] = '\0';
		buf_commit(&b, size);
	}
	buf_put(&b, MARK, sizeof(MARK) - 1);
	err = take((char *)b.data, b.len, &state);
	buf_clear(&b);
	shell_state_clear(&state);
	return err;
}

static void
test_limits(void **s)
{
	assert_int_equal(take_exports(1, SNAPSHOT_STRING_MAX), 0);
	assert_int_equal(take_exports(1, SNAPSHOT_STRING_MAX + 1), -E2BIG);
	assert_int_equal(take_exports(4, SNAPSHOT_EXPORTS_MAX / 4), 0);
	assert_int_equal(take_exports(5, SNAPSHOT_EXPORTS_MAX / 4), -E2BIG);
}

static void
test_restore(void **s)
{
	const struct snapshot_shell *zsh = shell_snapshot_find(SLICE("zsh"));
	const struct snapshot_shell *bash = shell_snapshot_find(SLICE("bash"));
	char *text, *most = xcalloc(1, SNAPSHOT_STRING_MAX);

	assert_null(shell_snapshot_find(SLICE("fish")));
	assert_null(shell_snapshot_find(SLICE("")));
	text = shell_snapshot_restore(zsh, SLICE("echo 'it'"));
	assert_non_null(strstr(text, "\neval 'echo '\\''it'\\'''"));
	free(text);
	memset(most, '\'', SNAPSHOT_STRING_MAX);
	assert_null(shell_snapshot_restore(
	    bash, (struct slice){ most, SNAPSHOT_STRING_MAX - 1 }));
	assert_null(shell_snapshot_restore(
	    zsh, (struct slice){ most, SNAPSHOT_STRING_MAX / 3 }));
	free(most);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_restore),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
