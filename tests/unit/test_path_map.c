/* SPDX-License-Identifier: ISC */
/*
 * path_map: paths in both directions, patterns, names that Windows cannot have,
 * and maps that are refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "path_map.h"
#include "windows_path.h"

static struct path_map
map_of(const char *text)
{
	struct path_map m = { .count = 0 };
	char why[PATH_MAP_WHY_MAX];

	if (path_map_read(&m, text, why) < 0)
		fail_msg("%s: %s", text, why);
	return m;
}

#define WORK  "C:\\work = /srv/work\n"
#define WHOLE "Z: = /\n"
/* A root in a root, another drive, and a root that hides a directory. */
#define DEEP                                                                   \
	"C: = /home/me\n"                                                      \
	"C:\\work = /srv/work\n"                                               \
	"C:\\work\\sub = /data\n"                                              \
	"D:\\x = /home/me/x\n"

/* What the client says and what it is here; NULL: the error. */
static const struct in_row {
	const char *map, *client, *server;
	int err;
	const char *why; /* a part of it */
} in_rows[] = {
	{ WORK, "C:\\work", "/srv/work", 0, NULL },
	{ WORK, "C:\\work\\", "/srv/work", 0, NULL },
	{ WORK, "C:\\work\\a\\b.c", "/srv/work/a/b.c", 0, NULL },
	{ WORK, "c:/WORK/A/b", "/srv/work/A/b", 0, NULL },
	{ WORK, "C:/work\\a/b\\c", "/srv/work/a/b/c", 0, NULL },
	{ WORK, "C:\\\\work//a\\\\\\b/", "/srv/work/a/b", 0, NULL },
	{ WORK, "C:\\.\\work\\.\\a\\.", "/srv/work/a", 0, NULL },
	{ WORK, "C:\\work\\\xc3\x9c 1", "/srv/work/\xc3\x9c 1", 0, NULL },
	{ WORK, "C:\\work\\.git\\x~1", "/srv/work/.git/x~1", 0, NULL },
	{ WORK, "C:\\work\\...a", "/srv/work/...a", 0, NULL },
	{ WHOLE, "Z:", "/", 0, NULL },
	{ WHOLE, "z:\\", "/", 0, NULL },
	{ WHOLE, "Z:\\etc\\passwd", "/etc/passwd", 0, NULL },
	/* the longest root */
	{ DEEP, "C:\\a", "/home/me/a", 0, NULL },
	{ DEEP, "C:\\workshop", "/home/me/workshop", 0, NULL },
	{ DEEP, "C:\\Work\\a", "/srv/work/a", 0, NULL },
	{ DEEP, "C:\\work\\SUB\\a", "/data/a", 0, NULL },
	{ DEEP, "C:\\work\\subs", "/srv/work/subs", 0, NULL },
	{ DEEP, "d:\\X\\y", "/home/me/x/y", 0, NULL },
	/* under no root */
	{ WORK, "C:\\workshop", NULL, -ENOENT, "under no root" },
	{ WORK, "D:\\work", NULL, -ENOENT, "under no root" },
	{ WORK, "C:\\WORK~1\\a", NULL, -ENOENT, "under no root" },
	{ WORK, "C:\\", NULL, -EXDEV, "above a root" },
	{ DEEP, "D:", NULL, -EXDEV, "above a root" },
	/* out of a root, and around the names */
	{ WORK, "C:\\work\\..", NULL, -EINVAL, "`..` is not permitted" },
	{ WORK, "C:\\work\\..\\..\\etc", NULL, -EINVAL, "`..`" },
	{ WORK, "C:\\x\\..\\work", NULL, -EINVAL, "`..`" },
	{ WORK, "C:/work/../work", NULL, -EINVAL, "`..`" },
	{ WORK, "C:work", NULL, -EINVAL, "current directory" },
	{ WORK, "C:..\\work", NULL, -EINVAL, "current directory" },
	{ WORK, "\\work", NULL, -EINVAL, "drive letter" },
	{ WORK, "work", NULL, -EINVAL, "drive letter" },
	{ WORK, "", NULL, -EINVAL, "drive letter" },
	{ WORK, "\\\\host\\share\\x", NULL, -EINVAL, "UNC" },
	{ WORK, "//host/share/x", NULL, -EINVAL, "UNC" },
	{ WORK, "\\/host/share", NULL, -EINVAL, "UNC" },
	{ WORK, "\\\\?\\C:\\work", NULL, -EINVAL, "of a device" },
	{ WORK, "//./C:/work", NULL, -EINVAL, "of a device" },
	{ WORK, "\\\\.\\NUL", NULL, -EINVAL, "of a device" },
	{ WORK, "\\??\\C:\\work", NULL, -EINVAL, "of a device" },
	{ WORK, "C:\\work\\\\?\\C:\\x", NULL, -EINVAL, "no name of Windows" },
	{ WORK, "C:\\work\\nul", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\NUL.txt", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\Con\\a", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\aux.c", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\com1", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\LPT9.a.b", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\com\xc2\xb2", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\conin$", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\prn .x", NULL, -EINVAL, "device" },
	{ WORK, "C:\\work\\com10", "/srv/work/com10", 0, NULL },
	{ WORK, "C:\\work\\null", "/srv/work/null", 0, NULL },
	{ WORK, "C:\\work\\a:b", NULL, -EINVAL, "alternate stream" },
	{ WORK, "C:\\work\\a::$DATA", NULL, -EINVAL, "alternate stream" },
	{ WORK, "C:\\work:x\\a", NULL, -EINVAL, "alternate stream" },
	{ WORK, "C:\\work\\a.", NULL, -EINVAL, "ignores" },
	{ WORK, "C:\\work\\a ", NULL, -EINVAL, "ignores" },
	{ WORK, "C:\\work\\...", NULL, -EINVAL, "ignores" },
	{ WORK, "C:\\work.\\a", NULL, -EINVAL, "ignores" },
	{ WORK, "C:\\work\\.. \\a", NULL, -EINVAL, "ignores" },
	{ WORK, "C:\\work\\a*", NULL, -EINVAL, "no name of Windows" },
	{ WORK, "C:\\work\\a|b", NULL, -EINVAL, "no name of Windows" },
	{ WORK, "C:\\work\\a\tb", NULL, -EINVAL, "control character" },
	{ WORK, "C:\\work\\\xff", NULL, -EINVAL, "UTF-8" },
};

static void
test_in(void **state)
{
	for (size_t i = 0; i < nitems(in_rows); i++) {
		const struct in_row *r = &in_rows[i];
		struct slice text = { r->client, strlen(r->client) };
		struct path_map m = map_of(r->map);
		char out[256], why[PATH_MAP_WHY_MAX];
		bool elsewhere;
		int err = path_map_in(&m, text, out, &elsewhere, why);

		assert_true(path_map_room(&m, text.len) <= sizeof(out));
		if (err != r->err)
			fail_msg("%s: %d", r->client, err);
		if (err == 0)
			assert_string_equal(out, r->server);
		else if (strstr(why, r->why) == NULL)
			fail_msg("%s: %s", r->client, why);
		path_map_clear(&m);
	}
}

/* What is here, and what the client is told; NULL: it has no name for it. */
static const struct out_row {
	const char *map, *server, *client;
} out_rows[] = {
	{ WORK, "/srv/work", "C:/work" },
	{ WORK, "/srv/work/a b/c", "C:/work/a b/c" },
	{ WORK, "/srv/workshop", NULL },
	{ WORK, "/srv", NULL },
	{ WORK, "/", NULL },
	{ WHOLE, "/", "Z:/" },
	{ WHOLE, "/etc/passwd", "Z:/etc/passwd" },
	/* the longest root, then others */
	{ DEEP, "/home/me/a", "C:/a" },
	{ DEEP, "/home/me/x/y", "D:/x/y" },
	{ DEEP, "/data", "C:/work/sub" },
	{ DEEP, "/srv/work/a", "C:/work/a" },
	/* the client's name would lead elsewhere */
	{ DEEP, "/home/me/work/a", NULL },
	{ DEEP, "/home/me/WORK/a", NULL },
	{ DEEP, "/srv/work/sub", NULL },
	{ DEEP, "/home/me/workshop", "C:/workshop" },
	{ "A: = /\nB: = /srv\nA:\\srv = /x\nB:\\y = /z", "/srv/y", NULL },
	{ "A: = /\nB: = /srv\nB:\\y = /z", "/srv/y", "A:/srv/y" },
	/* names that the client cannot have */
	{ WORK, "/srv/work/a\\b", NULL },
	{ WORK, "/srv/work/a:b", NULL },
	{ WORK, "/srv/work/a?", NULL },
	{ WORK, "/srv/work/a.", NULL },
	{ WORK, "/srv/work/a /b", NULL },
	{ WORK, "/srv/work/aux.c", NULL },
	{ WORK, "/srv/work/\xff", NULL },
	{ WORK, "/srv/work/\x01", NULL },
};

static void
test_out(void **state)
{
	for (size_t i = 0; i < nitems(out_rows); i++) {
		const struct out_row *r = &out_rows[i];
		struct path_map m = map_of(r->map);
		char back[256], why[PATH_MAP_WHY_MAX];
		bool elsewhere;
		struct buf b;

		buf_init(&b, 256);
		buf_puts(&b, "x");
		if (path_map_out(&m, r->server, &b) != (r->client != NULL))
			fail_msg("%s: %.*s", r->server, (int)b.len, b.data);
		buf_put_u8(&b, '\0');
		assert_string_equal(
		    (char *)b.data + 1, r->client ? r->client : "");
		if (r->client != NULL) {
			struct slice text = { r->client, strlen(r->client) };

			assert_int_equal(
			    0, path_map_in(&m, text, back, &elsewhere, why));
			assert_string_equal(back, r->server);
		}
		buf_clear(&b);
		path_map_clear(&m);
	}
}

/* A directory that is denied takes with it what the client has below it. */
static void
test_elsewhere(void **state)
{
	static const struct {
		const char *client;
		bool elsewhere;
	} rows[] = { { "C:\\", true }, { "C:\\work", true },
		{ "C:\\work\\a", false }, { "C:\\a", false },
		{ "C:\\work\\sub", false }, { "D:\\x", false } };
	struct path_map m = map_of(DEEP);
	char out[256], why[PATH_MAP_WHY_MAX];
	bool elsewhere;

	for (size_t i = 0; i < nitems(rows); i++) {
		struct slice text = { rows[i].client, strlen(rows[i].client) };

		assert_int_equal(
		    0, path_map_in(&m, text, out, &elsewhere, why));
		assert_int_equal(elsewhere, rows[i].elsewhere);
	}
	path_map_clear(&m);
	m = map_of("C: = /\nC:\\work = /srv/work");
	assert_int_equal(0, path_map_in(&m, SLICE("C:"), out, &elsewhere, why));
	assert_false(elsewhere);
	path_map_clear(&m);
}

static const struct in_row pattern_rows[] = {
	{ WORK, "C:\\work\\**\\*.env", "/srv/work/**/*.env", 0, NULL },
	{ WORK, "c:/WORK/*", "/srv/work/*", 0, NULL },
	{ WORK, "C:\\work", "/srv/work", 0, NULL },
	{ WORK, "C:\\work\\a\\{b,c}\\d", "/srv/work/a/{b,c}/d", 0, NULL },
	{ WHOLE, "Z:\\**\\x", "/**/x", 0, NULL },
	{ WHOLE, "Z:", "/", 0, NULL },
	{ WHOLE, "Z:\\", "/", 0, NULL },
	{ "C: = /a*b", "C:\\x?", "/a\\*b/x?", 0, NULL },
	/* without a drive */
	{ WORK, "**\\.env", "**/.env", 0, NULL },
	{ WORK, "~\\x", "~/x", 0, NULL },
	{ WORK, "codex-project-roots://**\\k", "codex-project-roots://**/k", 0,
	    NULL },
	{ WORK, "/srv/work/*", "/srv/work/*", 0, NULL },
	/* refused */
	{ WORK, "{C:\\work,D:}\\*", NULL, -EINVAL, "colon" },
	{ WORK, "C:\\work\\*:x", NULL, -EINVAL, "colon" },
	{ WORK, "C:\\work\\*\\..\\x", NULL, -EINVAL, "`..`" },
	{ WORK, "C:\\work\\..\\*", NULL, -EINVAL, "`..`" },
	{ WORK, "\\\\host\\share\\*", NULL, -EINVAL, "UNC" },
	{ WORK, "\\work\\*", NULL, -EINVAL, "drive letter" },
	{ WORK, "C:*", NULL, -EINVAL, "current directory" },
	{ WORK, "D:\\*", NULL, -ENOENT, "under no root" },
	{ WORK, "C:\\works\\*", NULL, -ENOENT, "under no root" },
	{ WORK, "C:\\*", NULL, -EXDEV, "above a root" },
	{ WORK, "C:\\w*", NULL, -EXDEV, "above a root" },
	{ DEEP, "C:\\*\\x", NULL, -EXDEV, "above a root" },
};

static void
test_patterns(void **state)
{
	for (size_t i = 0; i < nitems(pattern_rows); i++) {
		const struct in_row *r = &pattern_rows[i];
		struct slice text = { r->client, strlen(r->client) };
		struct path_map m = map_of(r->map);
		char out[256], why[PATH_MAP_WHY_MAX];
		int err = path_map_pattern(&m, text, out, why);

		if (err != r->err)
			fail_msg("%s: %d", r->client, err);
		if (err == 0)
			assert_string_equal(out, r->server);
		else if (strstr(why, r->why) == NULL)
			fail_msg("%s: %s", r->client, why);
		path_map_clear(&m);
	}
}

static void
test_overlong(void **state)
{
	struct path_map m = map_of(WORK);
	char *text = xmalloc(WINDOWS_PATH_MAX_BYTES + 2), *out;
	char why[PATH_MAP_WHY_MAX];
	bool elsewhere;

	memset(text, 'a', WINDOWS_PATH_MAX_BYTES + 1);
	memcpy(text, "C:\\work\\", 8);
	out = xmalloc(path_map_room(&m, WINDOWS_PATH_MAX_BYTES));
	assert_int_equal(
	    0, path_map_in(&m, (struct slice){ text, WINDOWS_PATH_MAX_BYTES },
		   out, &elsewhere, why));
	assert_int_equal(-EINVAL,
	    path_map_in(&m, (struct slice){ text, WINDOWS_PATH_MAX_BYTES + 1 },
		out, &elsewhere, why));
	assert_non_null(strstr(why, "it has 32768 bytes, limit is 32767"));
	free(text);
	free(out);
	path_map_clear(&m);
}

/* A map, and what it is written as; NULL: the error. */
static const struct map_row {
	const char *text, *written, *why;
} map_rows[] = {
	{ "C:\\work=/srv/work", "C:\\work = /srv/work\n", NULL },
	{ "c:/work/ = /srv//work/", "C:\\work = /srv/work\n", NULL },
	{ "  z:\\  =  /  ", "Z: = /\n", NULL },
	{ "C:\\a b = /x y", "C:\\a b = /x y\n", NULL },
	{ "C:\\a=b = /x", "C:\\a=b = /x\n", NULL },
	{ "C: = /a\nD: = /b", "C: = /a\nD: = /b\n", NULL },
	{ "C: = /a\nC:\\b = /a/b", "C: = /a\nC:\\b = /a/b\n", NULL },
	{ "C:\\work", NULL, "is not CLIENT-PATH = /PATH" },
	{ "C:\\work = srv", NULL, "is not CLIENT-PATH = /PATH" },
	{ "= /srv", NULL, "drive letter" },
	{ "work = /srv", NULL, "drive letter" },
	{ "/work = /srv", NULL, "drive letter" },
	{ "\\\\host\\share = /srv", NULL, "UNC" },
	{ "\\\\?\\C: = /srv", NULL, "device" },
	{ "C:work = /srv", NULL, "current directory" },
	{ "C:\\a\\..\\b = /srv", NULL, "`..`" },
	{ "C:\\con = /srv", NULL, "device" },
	{ "C:\\a. = /srv", NULL, "ignores" },
	{ "C:\\a = /srv/../etc", NULL, "`.` and `..`" },
	{ "C:\\a = /srv/.", NULL, "`.` and `..`" },
	{ "C:\\a = /srv/\x01", NULL, "control character" },
	{ "C:\\a = /srv/ /", NULL, "a blank at the end" },
	{ "C:\\a = /x\nc:\\A\\ = /y", NULL,
	    "ambiguous: `C:\\A` is mapped already, to /x" },
	{ "C:\\a = /x\nD: = /x/", NULL,
	    "ambiguous: /x is mapped already, as `C:\\a`" },
};

static void
test_maps(void **state)
{
	for (size_t i = 0; i < nitems(map_rows); i++) {
		const struct map_row *r = &map_rows[i];
		struct path_map m = { .count = 0 };
		char why[PATH_MAP_WHY_MAX];
		int err = path_map_read(&m, r->text, why);
		struct buf b;

		if (err != (r->written ? 0 : -EINVAL))
			fail_msg("%s: %d", r->text, err);
		if (err < 0 && strstr(why, r->why) == NULL)
			fail_msg("%s: %s", r->text, why);
		buf_init(&b, PATH_MAP_TEXT_MAX);
		path_map_write(&m, &b);
		buf_put_u8(&b, '\0');
		if (err == 0)
			assert_string_equal((char *)b.data, r->written);
		buf_clear(&b);
		path_map_clear(&m);
	}
}

/* The limits are met before anything is kept, and the largest map fits. */
static void
test_limits(void **state)
{
	struct path_map m = { .count = 0 };
	char text[1024], why[PATH_MAP_WHY_MAX];
	struct buf b;

	for (int i = 0; i < PATH_MAP_ROOTS_MAX; i++) {
		snprintf(text, sizeof(text), "C:\\%d = /%d", i, i);
		assert_int_equal(0, path_map_add(&m, text, why));
	}
	assert_int_equal(-EINVAL, path_map_add(&m, "D: = /d", why));
	assert_string_equal(why, "more than 32 roots");
	path_map_clear(&m);
	for (int i = 0; i < 4; i++) {
		int n = snprintf(text, sizeof(text), "%c: = /%d", 'A' + i, i);

		memset(text + n, 'a', 511 - (size_t)n - (i == 3));
		text[510 + (i < 3)] = '\0';
		assert_int_equal(strlen(text) + 1, i < 3 ? 512 : 511);
		assert_int_equal(0, path_map_add(&m, text, why));
	}
	buf_init(&b, PATH_MAP_TEXT_MAX);
	path_map_write(&m, &b);
	assert_false(b.failed);
	assert_int_equal(b.len, PATH_MAP_TEXT_MAX - 1);
	buf_clear(&b);
	assert_int_equal(-EINVAL, path_map_add(&m, "E: = /e", why));
	assert_string_equal(
	    why, "all roots together have more than 2047 bytes");
	path_map_clear(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in),
		cmocka_unit_test(test_out),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_overlong),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
