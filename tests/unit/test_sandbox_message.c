/* SPDX-License-Identifier: ISC */
/*
 * sandbox_message: every message comes back as it was put, none of its
 * beginnings does, and no count or length is believed before it is checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox_message.h"
#include "util.h"

static struct plan_mount mounts[] = {
	{ PLAN_WRITE, false, (char[]){ "/w" }, { FS_DIRECTORY, 1, 2 } },
	{ PLAN_PLACEHOLDER_DIRECTORY, false, (char[]){ "/w/.git" }, { 0 } },
	{ PLAN_DENY_DIRECTORY, true, (char[]){ "/w/a" },
	    { FS_DIRECTORY, UINT64_MAX, UINT64_MAX } },
	{ PLAN_DENY_FILE, false, (char[]){ "/w/b c" }, { FS_FILE, 3, 4 } },
	{ PLAN_READ, false, (char[]){ "/l" }, { FS_LINK, 5, 6 } },
};

static const struct plan plan = { .base = PLAN_BASE_EMPTY,
	.network = true,
	.minimal = true,
	.mounts = mounts,
	.count = nitems(mounts) };

/* What is put, and how it is read again: 0 or -EBADMSG, nothing left over. */
struct message {
	void (*put)(struct buf *b);
	int (*get)(struct buf_reader *r);
};

static void
check_truncations(const struct message *m)
{
	struct buf_reader r;
	struct buf b;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	m->put(&b);
	assert_false(b.failed);
	for (size_t n = 0; n <= b.len + 1; n++) {
		/* A copy of that size: a sanitizer sees what is behind it. */
		_cleanup_free_ uint8_t *copy = xcalloc(n, 1);

		memcpy(copy, b.data, n < b.len ? n : b.len);
		buf_reader_init(&r, copy, n);
		assert_int_equal(m->get(&r), n == b.len ? 0 : -EBADMSG);
	}
	buf_clear(&b);
}

static void
put_build(struct buf *b)
{
	const struct sandbox_options o = { .userns = true,
		.landlock_only = true,
		.log = true,
		.shm_bytes = 7,
		.memory_bytes = UINT64_MAX };

	sandbox_build_put(b, &o, &plan);
}

/* Placeholders stay with the runner. */
static void
check_build(const struct sandbox_options *o, const struct plan *got)
{
	size_t n = 0;

	assert_true(o->userns && o->landlock_only && o->log && !o->allow_32bit);
	assert_int_equal(o->shm_bytes, 7);
	assert_true(o->memory_bytes == UINT64_MAX);
	assert_int_equal(got->base, PLAN_BASE_EMPTY);
	assert_true(got->network && got->minimal && !got->deny_proc);
	assert_int_equal(got->count, plan.count - 1);
	for (size_t i = 0; i < plan.count; i++) {
		const struct plan_mount *m = &got->mounts[n];

		if (plan_is_placeholder(&mounts[i]))
			continue;
		assert_string_equal(m->path, mounts[i].path);
		assert_int_equal(m->kind, mounts[i].kind);
		assert_int_equal(m->reopened, mounts[i].reopened);
		assert_int_equal(m->scratch, mounts[i].scratch);
		assert_memory_equal(&m->seen, &mounts[i].seen, sizeof(m->seen));
		n++;
	}
}

static int
get_build(struct buf_reader *r)
{
	struct sandbox_options o;
	struct plan got;
	int err;

	buf_get_u8(r);
	err = sandbox_build_get(r, &o, &got);
	if (err == 0)
		check_build(&o, &got);
	plan_clear(&got);
	return err;
}

static struct placeholder all[] = {
	{ .path = "/w/.git", .seen = { FS_DIRECTORY, 1, 2 } },
	{ .path = "/w/.aws", .seen = { FS_MISSING, 0, 0 } },
	{ .path = "/w/.codex",
	    .covered = true,
	    .seen = { FS_DIRECTORY, 1, 3 } },
};
static const struct placeholders some = { .all = all, .count = nitems(all) };

static void
check_bare(const struct plan *got, size_t count)
{
	assert_int_equal(got->count, count);
	assert_string_equal(got->mounts[0].path, "/w/.git");
	assert_int_equal(got->mounts[0].seen.inode, 2);
}

static char *const argv[] = { (char[]){ "sh" }, (char[]){ "" },
	(char[]){ "a b\nc" }, NULL };

static void
put_start(struct buf *b)
{
	static const char *const candidates[] = { "/bin/sh", "/usr/bin/sh",
		NULL };
	char *const envp[] = { NULL };
	const struct sandbox_command c = { candidates, argv, envp, "/tmp",
		"/srv", true };

	sandbox_start_put(b, &c, 5, &some);
}

static int
get_start(struct buf_reader *r)
{
	struct sandbox_command c;
	struct plan cover;
	int err;

	buf_get_u8(r);
	err = sandbox_start_get(r, &c, &cover);
	if (err == 0) {
		check_bare(&cover, 2);
		assert_true(c.tty);
		assert_int_equal(c.joins, 5);
		assert_string_equal(c.cwd, "/tmp");
		assert_string_equal(c.instead, "/srv");
		assert_string_equal(c.candidates[1], "/usr/bin/sh");
		assert_null(c.candidates[2]);
		for (size_t i = 0; argv[i] != NULL; i++)
			assert_string_equal(c.argv[i], argv[i]);
		assert_null(c.argv[3]);
		assert_null(c.envp[0]);
	}
	sandbox_command_clear(&c);
	plan_clear(&cover);
	return err;
}

static void
put_cover(struct buf *b)
{
	const struct placeholders none = { .all = all + 1, .count = 2 };
	struct buf nothing;

	buf_init(&nothing, 64);
	assert_false(sandbox_cover_put(&nothing, &none));
	buf_clear(&nothing);
	assert_true(sandbox_cover_put(b, &some));
}

static int
get_cover(struct buf_reader *r)
{
	struct plan got;
	int err;

	buf_get_u8(r);
	err = sandbox_cover_get(r, &got);
	if (err == 0)
		check_bare(&got, 1);
	plan_clear(&got);
	return err;
}

static void
put_answer(struct buf *b)
{
	const struct sandbox_answer a = { .err = -EPERM,
		.enforcing = true,
		.stale = true,
		.step = "mounting /w",
		.command = 7,
		.init = 8,
		.landlock_abi = 9,
		.no_namespaces = true,
		.no_proc = true };

	sandbox_answer_put(b, &a);
}

static int
get_answer(struct buf_reader *r)
{
	struct sandbox_answer a;
	int err = sandbox_answer_get(r, &a);

	if (err == 0) {
		assert_int_equal(a.err, -EPERM);
		assert_true(a.enforcing);
		assert_true(a.stale);
		assert_string_equal(a.step, "mounting /w");
		assert_int_equal(a.command, 7);
		assert_int_equal(a.init, 8);
		assert_int_equal(a.landlock_abi, 9);
		assert_true(a.no_namespaces && a.no_proc);
	}
	return err;
}

static void
test_round_trips(void **state)
{
	static const struct message messages[] = {
		{ put_build, get_build },
		{ put_start, get_start },
		{ put_cover, get_cover },
		{ put_answer, get_answer },
	};

	for (size_t i = 0; i < nitems(messages); i++)
		check_truncations(&messages[i]);
}

static void
test_hostile_counts(void **state)
{
	static const uint32_t counts[] = { 1, RESOLVE_MOUNTS_MAX,
		RESOLVE_MOUNTS_MAX + 1, INT32_MAX, UINT32_MAX };

	for (size_t i = 0; i < nitems(counts); i++) {
		struct sandbox_command c;
		struct buf_reader r;
		struct plan got;
		struct buf b;

		buf_init(&b, SANDBOX_MESSAGE_MAX);
		buf_put_u32(&b, counts[i]);
		buf_reader_init(&r, b.data, b.len);
		assert_int_equal(sandbox_cover_get(&r, &got), -EBADMSG);
		plan_clear(&got);
		buf_clear(&b);

		buf_put_u32(&b, 0);		       /* nothing to cover */
		buf_put(&b, "\0\0\0\0\0\0\0/\0/", 11); /* up to `instead` */
		buf_put_u32(&b, counts[i]);
		buf_reader_init(&r, b.data, b.len);
		assert_int_equal(sandbox_start_get(&r, &c, &got), -EBADMSG);
		sandbox_command_clear(&c);
		plan_clear(&got);
		buf_clear(&b);
	}
}

static void
check_mount(uint8_t kind, uint8_t type, const char *path, int want)
{
	struct buf_reader r;
	struct plan got;
	struct buf b;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	buf_put_u32(&b, 1);
	buf_put_u8(&b, kind);
	buf_put_u8(&b, 0);
	buf_put_u8(&b, 0);
	buf_put_u8(&b, type);
	buf_put_u64(&b, 0);
	buf_put_u64(&b, 0);
	buf_put_string(&b, path, strlen(path));
	buf_reader_init(&r, b.data, b.len);
	assert_int_equal(sandbox_cover_get(&r, &got), want);
	plan_clear(&got);
	buf_clear(&b);
}

static void
test_impossible_mounts(void **state)
{
	check_mount(PLAN_READ, FS_FILE, "/x", 0);
	check_mount(PLAN_PRIVATE + 1, FS_FILE, "/x", -EBADMSG);
	check_mount(UINT8_MAX, FS_FILE, "/x", -EBADMSG);
	check_mount(PLAN_READ, FS_OTHER + 1, "/x", -EBADMSG);
	check_mount(PLAN_READ, FS_FILE, "x", -EBADMSG);
	check_mount(PLAN_READ, FS_FILE, "", -EBADMSG);
}

/* --- on the way --------------------------------------------------------- */

static int pair[2];

static int
open_pair(void **state)
{
	const struct timeval wait = { .tv_usec = 1000 };

	return socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
	       setsockopt(
		   pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0;
}

static int
close_pair(void **state)
{
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static void
test_descriptors_travel(void **state)
{
	int fds[] = { 0, 1, 2 }, got[SANDBOX_FDS_MAX];
	struct buf in, out;
	size_t n = 0;

	buf_init(&in, SANDBOX_MESSAGE_MAX);
	buf_init(&out, SANDBOX_MESSAGE_MAX);
	put_answer(&out);
	assert_int_equal(
	    sandbox_send(pair[1], &out, fds, nitems(fds), NULL), 0);
	assert_int_equal(sandbox_recv(pair[0], &in, got, &n), 0);
	assert_int_equal(n, nitems(fds));
	assert_int_equal(in.len, out.len);
	assert_memory_equal(in.data, out.data, in.len);
	while (n > 0) {
		assert_int_equal(fcntl(got[--n], F_GETFD), FD_CLOEXEC);
		close(got[n]);
	}
	assert_int_equal(sandbox_send(pair[1], &out, NULL, 0, NULL), 0);
	assert_int_equal(sandbox_recv(pair[0], &in, got, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(sandbox_recv(pair[0], &in, got, &n), -ETIMEDOUT);
	buf_clear(&in);
	buf_clear(&out);
}

/* Not more than the socket holds, nobody reads meanwhile. */
static void
test_sizes(void **state)
{
	static const size_t sizes[] = { 1, 4095, 4096, 4097, 60000 };
	struct buf in, out;

	for (size_t i = 0; i < nitems(sizes); i++) {
		int got[SANDBOX_FDS_MAX];
		size_t n;

		buf_init(&in, SANDBOX_MESSAGE_MAX);
		buf_init(&out, SANDBOX_MESSAGE_MAX);
		for (size_t at = 0; at < sizes[i]; at++)
			buf_put_u8(&out, (uint8_t)(at * 7));
		assert_int_equal(sandbox_send(pair[1], &out, NULL, 0, NULL), 0);
		assert_int_equal(sandbox_recv(pair[0], &in, got, &n), 0);
		assert_int_equal(in.len, sizes[i]);
		assert_memory_equal(in.data, out.data, in.len);
		buf_clear(&in);
		buf_clear(&out);
	}
}

static int
receive(const void *bytes, size_t len)
{
	int got[SANDBOX_FDS_MAX], err;
	struct buf b;
	size_t n;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	assert_int_equal(write(pair[1], bytes, len), len);
	err = sandbox_recv(pair[0], &b, got, &n);
	buf_clear(&b);
	return err;
}

static void
test_impossible_lengths(void **state)
{
	assert_int_equal(receive("\0\0\0\0", 4), -EBADMSG);
	assert_int_equal(receive("\xff\xff\xff\xff", 4), -EBADMSG);
	assert_int_equal(receive("\1\0\0\x0c", 4), -EBADMSG);
	/* One order, one answer: nothing comes behind it. */
	assert_int_equal(receive("\1\0\0\0xy", 6), -EBADMSG);
	assert_int_equal(receive("\4\0", 2), -ETIMEDOUT);
}

static void
test_the_end(void **state)
{
	int got[SANDBOX_FDS_MAX];
	struct buf b;
	size_t n;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	assert_int_equal(sandbox_send(pair[1], &b, NULL, 0, NULL), -E2BIG);
	assert_int_equal(write(pair[1], "\4\0\0\0x", 5), 5);
	shutdown(pair[1], SHUT_WR);
	assert_int_equal(sandbox_recv(pair[0], &b, got, &n), -EPIPE);
	assert_int_equal(sandbox_recv(pair[0], &b, got, &n), -EPIPE);
	close(pair[0]);
	put_answer(&b);
	assert_int_equal(sandbox_send(pair[1], &b, NULL, 0, NULL), -EPIPE);
	pair[0] = dup(pair[1]);
	buf_clear(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_hostile_counts),
		cmocka_unit_test(test_impossible_mounts),
		cmocka_unit_test_setup_teardown(
		    test_descriptors_travel, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(
		    test_sizes, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(
		    test_impossible_lengths, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(
		    test_the_end, open_pair, close_pair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
