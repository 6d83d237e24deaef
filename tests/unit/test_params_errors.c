/* SPDX-License-Identifier: ISC */
/*
 * params: errors inside of members, which of several errors is told, methods
 * without parameters, and the families of doc/protocol.md section 5.3.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "json_text.h"
#include "params.h"
#include "params_text.h"

#define START(more)                                                            \
	"{\"processId\":\"p\",\"argv\":[],\"cwd\":\"file:a\",\"env\":{},"      \
	"\"tty\":true" more "}"
#define POLICY(members)	 START(",\"envPolicy\":{" members "}")
#define INHERIT		 "\"inherit\":\"all\""
#define IGNORE		 ",\"ignoreDefaultExcludes\":false"
#define EXCLUDE		 ",\"exclude\":[]"
#define SET		 ",\"set\":{}"
#define INCLUDE		 ",\"includeOnly\":[]"
#define SANDBOX(members) "{\"path\":\"file:a\",\"sandbox\":{" members "}}"
#define LEVEL		 ",\"windowsSandboxLevel\":\"disabled\""
#define DISABLED	 "\"permissions\":{\"type\":\"disabled\"}"
#define WALK(options)	 "{\"path\":\"file:a\",\"options\":{" options "}}"
#define LIMITS		 "\"maxDepth\":1,\"maxDirectories\":1,\"maxEntries\":1"
#define FOLLOW		 ",\"followDirectorySymlinks\":true"
#define WRITE(chunk, id)                                                       \
	"{\"processId\":\"p\",\"chunk\":\"" chunk "\",\"writeId\":" id "}"

/* "" passes; else the error, "... " as a prefix. */
static const struct row {
	const char *method, *params, *error;
} rows[] = {
	/* enum values */
	{ "process/signal", "{\"processId\":\"p\",\"signal\":\"kill\"}",
	    "unknown variant `kill`, expected `interrupt`" },
	{ "process/signal", "{\"processId\":\"p\",\"signal\":\"Interrupt\"}",
	    "unknown variant `Interrupt`, expected `interrupt`" },
	{ "process/signal", "{\"processId\":\"p\",\"signal\":\"\"}",
	    "unknown variant ``, expected `interrupt`" },
	{ "process/signal",
	    "{\"processId\":\"p\",\"signal\":{\"interrupt\":null}}",
	    "invalid type: map, " },
	{ "fs/open", "{\"handleId\":\"\",\"path\":\"file:a\",\"mode\":\"w\"}",
	    "unknown variant `w`, expected `read` or `replace`" },
	/* lists of hosts */
	{ "process/start", START(",\"networkProxy\":{}"),
	    "missing field `proxy`" },
	{ "process/start",
	    START(",\"networkProxy\":{\"proxy\":{\"mode\":\"x\"}}"),
	    "unknown variant `x`, expected `full` or `limited`" },
	{ "process/start",
	    START(",\"networkProxy\":{\"proxy\":{\"domains\":{\"a\":\"x\"}}}"),
	    "unknown variant `x`, expected `allow` or `deny`" },
	{ "process/start",
	    START(",\"networkProxy\":{\"proxy\":{\"domains\":{\"a\":1}}}"),
	    "invalid type: number, expected a string" },
	{ "process/start",
	    START(",\"networkProxy\":{\"proxy\":{\"unixSockets\":[]}}"),
	    "invalid type: sequence, expected a map" },
	{ "process/start",
	    START(",\"networkProxy\":{\"proxy\":{\"domains\":null,"
		  "\"unixSockets\":null,\"other\":1},\"other\":1}"),
	    "" },
	{ "process/start", START(",\"network\":{\"allow\":\"a\"}"),
	    "invalid type: string " },
	{ "process/start", START(",\"network\":{\"deny\":[1]}"),
	    "invalid type: number, expected a string" },
	{ "process/start", START(",\"network\":{\"allow\":null}"), "" },
	{ "process/start",
	    START(",\"network\":{},\"networkProxy\":{\"proxy\":{}}"),
	    "network and networkProxy exclude each other" },
	/* a wrong type is told before a missing field, wherever they are */
	{ "process/start", "{\"tty\":7}",
	    "invalid type: number, expected a boolean" },
	{ "process/start", "{\"argv\":null,\"tty\":true}",
	    "invalid type: null, expected a sequence" },
	{ "process/read", "{\"waitMs\":-1}", "invalid number" },
	{ "process/write", "{\"chunk\":\"Zg\"}", "Invalid padding" },
	{ "fs/copy", "{\"recursive\":7}",
	    "invalid type: number, expected a boolean" },
	{ "fs/copy", "{\"destinationPath\":\"/x\"}",
	    "invalid URI: relative URL without a base" },
	/* the first that is missing, not the first of the text */
	{ "process/start", "{\"tty\":true,\"processId\":\"p\"}",
	    "missing field `argv`" },
	{ "process/write", "{\"writeId\":\"w\",\"processId\":\"p\"}",
	    "missing field `chunk`" },
	{ "fs/copy", "{\"recursive\":true}", "missing field `sourcePath`" },
	{ "fs/open", "{\"path\":\"file:a\"}", "missing field `handleId`" },
	/* names are exact */
	{ "process/read", "{\"processid\":\"p\"}",
	    "missing field `processId`" },
	{ "process/read", "{\"process_id\":\"p\"}",
	    "missing field `processId`" },
	{ "process/read", "{\"processId \":\"p\"}",
	    "missing field `processId`" },
	{ "process/read", "{\"\\u0070rocessId\":\"p\"}", "" },
	/* writeId: checked last */
	{ "process/write", WRITE("", "\"\""), "writeId must not be empty" },
	{ "process/write", WRITE("", "\" \""), "" },
	{ "process/write", WRITE("Zg", "\"\""), "Invalid padding" },
	{ "process/write", "{\"chunk\":\"\",\"writeId\":\"\"}",
	    "missing field `processId`" },
	/* the environment policy: all five are required */
	{ "process/start", POLICY(INHERIT IGNORE EXCLUDE SET INCLUDE), "" },
	{ "process/start",
	    POLICY(INHERIT IGNORE EXCLUDE SET INCLUDE ",\"x\":7"), "" },
	{ "process/start", POLICY(""), "missing field `inherit`" },
	{ "process/start", POLICY(INHERIT),
	    "missing field `ignoreDefaultExcludes`" },
	{ "process/start", POLICY(INHERIT IGNORE), "missing field `exclude`" },
	{ "process/start", POLICY(INHERIT IGNORE EXCLUDE),
	    "missing field `set`" },
	{ "process/start", POLICY(INHERIT IGNORE EXCLUDE SET),
	    "missing field `includeOnly`" },
	{ "process/start", POLICY("\"inherit\":\"ALL\""),
	    "unknown variant `ALL`, expected one of " },
	{ "process/start", POLICY("\"inherit\":1"),
	    "invalid type: number, expected string or map" },
	{ "process/start", POLICY(INHERIT ",\"ignoreDefaultExcludes\":null"),
	    "invalid type: null, expected a boolean" },
	{ "process/start", POLICY(INHERIT IGNORE ",\"exclude\":[7]"),
	    "invalid type: number, expected a string" },
	{ "process/start", POLICY(INHERIT IGNORE EXCLUDE ",\"set\":{\"a\":1}"),
	    "invalid type: number, expected a string" },
	{ "process/start",
	    POLICY(INHERIT IGNORE EXCLUDE SET ",\"includeOnly\":{}"),
	    "invalid type: map, expected a sequence" },
	/* the options of fs/walk */
	{ "fs/walk", WALK(LIMITS FOLLOW), "" },
	{ "fs/walk", WALK(LIMITS FOLLOW ",\"x\":7"), "" },
	{ "fs/walk", WALK(""), "missing field `maxDepth`" },
	{ "fs/walk", WALK("\"maxDepth\":1"), "missing field `maxDirectories`" },
	{ "fs/walk", WALK("\"maxDepth\":1,\"maxDirectories\":1"),
	    "missing field `maxEntries`" },
	{ "fs/walk", WALK(LIMITS), "missing field `followDirectorySymlinks`" },
	{ "fs/walk", WALK("\"maxDepth\":-1"), "invalid number" },
	{ "fs/walk", WALK("\"maxEntries\":null"),
	    "invalid type: null, expected " },
	{ "fs/walk", WALK(LIMITS FOLLOW ",\"pruneHiddenDirectories\":1"),
	    "invalid type: number, expected a boolean" },
	{ "fs/walk", WALK(LIMITS FOLLOW ",\"pruneHiddenDirectories\":null"),
	    "invalid type: null, expected a boolean" },
	/* the sandbox: shape only */
	{ "fs/readFile", SANDBOX(DISABLED LEVEL), "" },
	{ "fs/readFile", SANDBOX(DISABLED LEVEL ",\"cwd\":\"file:a\""), "" },
	{ "fs/readFile", SANDBOX(""), "missing field `permissions`" },
	{ "fs/readFile", SANDBOX(DISABLED),
	    "missing field `windowsSandboxLevel`" },
	{ "fs/readFile", SANDBOX("\"permissions\":{}" LEVEL),
	    "missing field `type`" },
	{ "fs/readFile", SANDBOX("\"permissions\":{\"type\":\"x\"}" LEVEL),
	    "unknown variant `x`, expected one of " },
	{ "fs/readFile", SANDBOX("\"permissions\":7" LEVEL),
	    "invalid type: number, expected struct " },
	{ "fs/readFile", SANDBOX(DISABLED LEVEL ",\"cwd\":\"/x\""),
	    "invalid URI: relative URL without a base" },
	{ "fs/readFile",
	    SANDBOX("\"permissions\":{\"type\":\"external\"}" LEVEL),
	    "missing field `network`" },
	/* no parameters */
	{ "environment/info", NULL, "" },
	{ "environment/info", "null", "" },
	{ "environment/info", "{}", "" },
	{ "environment/info", "[]", "invalid type: sequence, expected unit" },
	{ "environment/info", "[null]",
	    "invalid type: sequence, expected unit" },
	{ "environment/info", "{\"a\":1}", "invalid type: map, expected unit" },
	{ "environment/info", "7", "invalid type: number, expected unit" },
	{ "environment/info", "false",
	    "invalid type: boolean `false`, expected unit" },
	{ "environment/info", "\"x\"",
	    "invalid type: string \"x\", expected unit" },
	{ "session/end", NULL, "" },
	{ "session/end", "{\"now\":true}", "invalid type: map, expected unit" },
	{ "environment/status", NULL, "" },
	{ "environment/status", "null", "" },
	{ "environment/status", "{}", "" },
	{ "environment/status", "[]", "invalid type: sequence, expected unit" },
	{ "environment/status", "{\"a\":1}",
	    "invalid type: map, expected unit" },
};

static void
test_rows(void **state)
{
	for (size_t i = 0; i < nitems(rows); i++) {
		const struct row *row = &rows[i];
		bool good = row->error[0] == '\0';
		struct decoded d;
		int r = decode_params(&d, row->method, row->params);

		if (r != (good ? 0 : -EBADMSG) ||
		    (!good && !error_matches(d.error, row->error)))
			fail_msg("row %zu, %s %s: %d, %s", i, row->method,
			    row->params ? row->params : "", r, d.error);
		decoded_clear(&d);
	}
}

/* Whatever a client sends, the error stays in its buffer and has its end. */
static void
test_long_values(void **state)
{
	static const size_t sizes[] = { 199, 200, 201, 1023, 1024, 5000 };

	for (size_t i = 0; i < nitems(sizes); i++) {
		_cleanup_free_ char *x = xmalloc(sizes[i] + 1);
		_cleanup_free_ char *params = NULL;
		struct decoded d;

		memset(x, 'x', sizes[i]);
		x[sizes[i]] = '\0';
		params =
		    xasprintf("{\"processId\":\"p\",\"signal\":\"%s\"}", x);
		assert_int_equal(
		    decode_params(&d, "process/signal", params), -EBADMSG);
		assert_int_equal(
		    strncmp(d.error, "unknown variant `xxxx", 21), 0);
		assert_non_null(strstr(d.error, "x`, expected `interrupt`"));
		decoded_clear(&d);
	}
}

static void
test_long_wrong_type(void **state)
{
	_cleanup_free_ char *params =
	    xasprintf("{\"processId\":\"p\",\"waitMs\":\"%05000d\"}", 0);
	struct decoded d;

	assert_int_equal(decode_params(&d, "process/read", params), -EBADMSG);
	assert_int_equal(
	    strncmp(d.error, "invalid type: string \"0000", 26), 0);
	assert_non_null(strstr(d.error, "0\", expected u64"));
	decoded_clear(&d);
}

static void
test_families(void **state)
{
	static const struct {
		const char *prefix, *family;
	} families[] = {
		{ "process/", "exec" },
		{ "command/", "exec" },
		{ "fs/", "filesystem" },
		{ "http/", "http" },
		{ "environment/info", "environment info" },
		{ "environment/status", "environment status" },
		{ "environmentConfig/", "environment config" },
		{ "capabilities/", "capability discovery" },
		{ "capabilityRoots/", "capability discovery" },
		{ "session/end", "session" },
		{ "session/keep", "session" },
		{ "session/list", "session" },
	};
	size_t found = 0;

	for (size_t i = 0; i < nitems(methods); i++)
		for (size_t k = 0; k < nitems(families); k++) {
			const char *prefix = families[k].prefix;

			if (strncmp(methods[i].wire, prefix, strlen(prefix)))
				continue;
			found++;
			assert_string_equal(
			    method_family_name(methods[i].family),
			    families[k].family);
		}
	/* all but initialize */
	assert_int_equal(found, nitems(methods) - 1);
}

/* Those without a method here (doc/protocol.md section 5.3). */
static void
test_other_families(void **state)
{
	assert_string_equal(method_family_name(FAMILY_ENVIRONMENT_CONFIG),
	    "environment config");
	assert_string_equal(method_family_name(FAMILY_CAPABILITY_DISCOVERY),
	    "capability discovery");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_long_values),
		cmocka_unit_test(test_long_wrong_type),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_other_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
