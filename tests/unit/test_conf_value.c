/* SPDX-License-Identifier: ISC */
/*
 * conf_value: what each kind of value takes, what it shows, and that what it
 * shows it takes again.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conf_value.h"
#include "util.h"

/* Room for any value. */
union value {
	uint32_t u32;
	uint64_t u64;
	char *string;
	struct strings strings;
	struct digests digests;
	struct nets nets;
};

static void
check_shown(const struct conf_type *type, const void *value, const char *shown)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	type->show(type, &b, value);
	buf_put_u8(&b, '\0');
	assert_string_equal((char *)b.data, shown);
	buf_clear(&b);
}

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_0 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const struct conf_type *type;
	const char *text, *shown;
} good[] = {
	{ &conf_duration, "500ms", "500ms\n" },
	{ &conf_duration, "1000ms", "1s\n" },
	{ &conf_duration, "80s", "80s\n" },
	{ &conf_duration, "120s", "2m\n" },
	{ &conf_duration, "0s", "0s\n" },
	{ &conf_duration, "1193h", "1193h\n" },
	{ &conf_duration, "2d", "48h\n" },
	{ &conf_optional_duration, "none", "none\n" },
	{ &conf_optional_duration, "5m", "5m\n" },
	{ &conf_bytes, "4096", "4K\n" },
	{ &conf_bytes, "1", "1\n" },
	{ &conf_bytes, "1536M", "1536M\n" },
	{ &conf_bytes, "2048M", "2G\n" },
	{ &conf_bytes, "1024G", "1T\n" },
	{ &conf_bytes, "3GiB", "3G\n" },
	{ &conf_bytes, "64KiB", "64K\n" },
	{ &memory_limit, "1024K", "1M\n" },
	{ &conf_optional_bytes, "none", "none\n" },
	{ &conf_count, "4294967295", "4294967295\n" },
	{ &conf_optional_count, "none", "none\n" },
	{ &sandbox_percent, "none", "none\n" },
	{ &sandbox_percent, "1%", "1%\n" },
	{ &sandbox_percent, "250%", "250%\n" },
	{ &sandbox_weight, "none", "none\n" },
	{ &sandbox_weight, "1", "1\n" },
	{ &sandbox_weight, "10000", "10000\n" },
	{ &conf_seconds, "0", "0\n" },
	{ &conf_mode, "0660", "0660\n" },
	{ &conf_mode, "27", "0027\n" },
	{ &conf_string, "a b", "a b\n" },
	{ &conf_path, "/a", "/a\n" },
	{ &conf_words, "a  b\tc", "a\nb\nc\n" },
	{ &conf_lines, "A=b c", "A=b c\n" },
	{ &conf_digests, HEX_A " " HEX_0, HEX_A "\n" HEX_0 "\n" },
	{ &conf_nets, "none", "none\n" },
	{ &conf_nets, "10.0.0.0/8 ::1", "10.0.0.0/8\n::1/128\n" },
	{ &conf_nets, "1.2.3.4 ::/0", "1.2.3.4/32\n::/0\n" },
	{ &conf_nets, "0.0.0.0/0", "0.0.0.0/0\n" },
};

static void
test_good_values(void **state)
{
	for (size_t i = 0; i < nitems(good); i++) {
		const struct conf_type *type = good[i].type;
		char why[CONF_WHY_MAX] = "";
		union value v = { 0 };

		if (type->parse(type, &v, good[i].text, why) < 0)
			fail_msg("`%s`: %s", good[i].text, why);
		check_shown(type, &v, good[i].shown);
		if (type->clear != NULL)
			type->clear(&v);
	}
}

static const struct {
	const struct conf_type *type;
	const char *text;
} bad[] = {
	{ &conf_duration, "80" },
	{ &conf_duration, "s" },
	{ &conf_duration, "-1s" },
	{ &conf_duration, " 1s" },
	{ &conf_duration, "1 s" },
	{ &conf_duration, "1s " },
	{ &conf_duration, "1S" },
	{ &conf_duration, "none" },
	{ &conf_duration, "1194h" },
	{ &conf_duration, "99999999999999999999s" },
	{ &conf_bytes, "0" },
	{ &conf_bytes, "1k" },
	{ &conf_bytes, "1KB" },
	{ &conf_bytes, "-1" },
	{ &sandbox_percent, "0%" },
	{ &sandbox_percent, "50" },
	{ &sandbox_percent, "1000001%" },
	{ &sandbox_percent, "-1%" },
	{ &conf_bytes, "8589934592G" },
	{ &conf_count, "0" },
	{ &conf_count, "4294967296" },
	{ &conf_count, "0x10" },
	{ &conf_optional_count, "0" },
	{ &conf_seconds, "4294967296" },
	{ &conf_mode, "0888" },
	{ &conf_mode, "1000" },
	{ &conf_mode, "-7" },
	{ &conf_mode, "u=rw" },
	{ &conf_path, "a" },
	{ &conf_digests, "a" },
	{ &conf_digests, HEX_A "a" },
	{ &conf_digests, HEX_0 " g" },
	{ &conf_nets, "1.2.3" },
	{ &conf_nets, "1.2.3.4/33" },
	{ &conf_nets, "1.2.3.4/" },
	{ &conf_nets, "1.2.3.4/-1" },
	{ &conf_nets, "::1/129" },
	{ &conf_nets, "::1%lo" },
};

static void
test_bad_values(void **state)
{
	for (size_t i = 0; i < nitems(bad); i++) {
		const struct conf_type *type = bad[i].type;
		char why[CONF_WHY_MAX] = "";
		union value v = { 0 };

		if (type->parse(type, &v, bad[i].text, why) != -EINVAL)
			fail_msg("`%s` was taken", bad[i].text);
		assert_true(why[0] != '\0');
		if (type->clear != NULL)
			type->clear(&v);
	}
}

static void
test_a_list_has_an_end(void **state)
{
	char why[CONF_WHY_MAX];
	struct strings s = { 0 };

	for (int i = 0; i < CONF_VALUES_MAX; i++)
		assert_int_equal(
		    conf_lines.parse(&conf_lines, &s, "x", why), 0);
	assert_int_equal(conf_lines.parse(&conf_lines, &s, "x", why), -EINVAL);
	assert_string_equal(why, "more than 1024 values");
	strings_clear(&s);
}

static void
test_digests(void **state)
{
	uint8_t digest[32];

	assert_int_equal(digest_parse(digest, HEX_0), 0);
	assert_int_equal(digest[0], 0x01);
	assert_int_equal(digest[31], 0xef);
	assert_int_equal(digest_parse(digest, ""), -EINVAL);
	assert_true(conf_digests.secret);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_values),
		cmocka_unit_test(test_bad_values),
		cmocka_unit_test(test_a_list_has_an_end),
		cmocka_unit_test(test_digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
