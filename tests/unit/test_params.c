/* SPDX-License-Identifier: ISC */
/*
 * params: every member of every method: good, missing, null, of every wrong
 * type, with the texts of doc/protocol.md section 4.
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

enum type {
	STRING,
	BOOL,
	U64,
	SIZE,	  /* of a terminal */
	MODE,	  /* of a file */
	TIME,	  /* of a file, in milliseconds */
	TEXT,	  /* a string without NUL */
	ABSOLUTE, /* a plain path */
	LIST,
	PATHS,
	HEADER_LIST,
	ROOTS,
	KEYS, /* lists of keys */
	MAP,
	PATH,
	BASE64,
	ENUM,
	OBJECT
};

enum need {
	REQUIRED,
	OPTIONAL, /* may be absent or null */
	DEFAULT,  /* may be absent, not null */
};

#define POLICY                                                                 \
	"{\"inherit\":\"all\",\"ignoreDefaultExcludes\":true,"                 \
	"\"exclude\":[],\"set\":{},\"includeOnly\":[]}"
#define SANDBOX                                                                \
	"{\"permissions\":{\"type\":\"disabled\"},"                            \
	"\"windowsSandboxLevel\":\"disabled\"}"
#define WALK                                                                   \
	"{\"maxDepth\":1,\"maxDirectories\":1,\"maxEntries\":1,"               \
	"\"followDirectorySymlinks\":false}"
#define HEADERS "[{\"name\":\"a\",\"value\":\"b\"}]"
#define URI	"\"file:///a\""

/* The members of a method, in the order of their declaration. */
static const struct field {
	const char *method, *key, *good;
	enum type type;
	enum need need;
} fields[] = {
	{ "initialize", "clientName", "\"c\"", STRING, REQUIRED },
	{ "initialize", "resumeSessionId", "null", STRING, OPTIONAL },
	{ "initialize", "watchSessionId", "null", STRING, OPTIONAL },
	{ "initialize", "takeOver", "null", BOOL, OPTIONAL },
	{ "initialize", "sessionKeep", "null", OBJECT, OPTIONAL },
	{ "session/keep", "keepMs", "7", U64, REQUIRED },
	{ "session/keep", "whileRunning", "true", BOOL, OPTIONAL },
	{ "process/start", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/start", "argv", "[\"a\"]", LIST, REQUIRED },
	{ "process/start", "cwd", URI, PATH, REQUIRED },
	{ "process/start", "env", "{}", MAP, REQUIRED },
	{ "process/start", "tty", "true", BOOL, REQUIRED },
	{ "process/start", "envPolicy", POLICY, OBJECT, OPTIONAL },
	{ "process/start", "pipeStdin", "true", BOOL, DEFAULT },
	{ "process/start", "arg0", "\"a\"", STRING, OPTIONAL },
	{ "process/start", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "process/start", "enforceManagedNetwork", "true", BOOL, DEFAULT },
	{ "process/start", "managedNetwork", "{}", OBJECT, OPTIONAL },
	{ "process/start", "networkProxy", "{\"proxy\":{}}", OBJECT, OPTIONAL },
	{ "process/start", "shellSnapshot",
	    "{\"scopeId\":\"s\",\"shell\":"
	    "{\"name\":\"bash\",\"path\":\"/b\"}}",
	    OBJECT, OPTIONAL },
	{ "process/start", "startId", "\"s\"", STRING, OPTIONAL },
	{ "process/start", "retention", "{\"headBytes\":1}", OBJECT, OPTIONAL },
	{ "process/start", "timeoutMs", "1", U64, OPTIONAL },
	{ "process/start", "rows", "1", SIZE, OPTIONAL },
	{ "process/start", "cols", "1", SIZE, OPTIONAL },
	{ "process/start", "term", "\"t\"", STRING, OPTIONAL },
	{ "process/start", "terminalModes", "\"AA==\"", BASE64, OPTIONAL },
	{ "process/read", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/read", "afterSeq", "1", U64, OPTIONAL },
	{ "process/read", "maxBytes", "1", U64, OPTIONAL },
	{ "process/read", "waitMs", "1", U64, OPTIONAL },
	{ "process/write", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/write", "chunk", "\"AA==\"", BASE64, REQUIRED },
	{ "process/write", "writeId", "\"w\"", STRING, REQUIRED },
	{ "process/signal", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/signal", "signal", "\"interrupt\"", ENUM, REQUIRED },
	{ "process/terminate", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/terminate", "mode", "\"graceful\"", ENUM, OPTIONAL },
	{ "process/terminate", "timeoutMs", "null", U64, OPTIONAL },
	{ "process/closeStdin", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/arrived", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/arrived", "bytes", "1", U64, REQUIRED },
	{ "process/resize", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/resize", "rows", "1", SIZE, REQUIRED },
	{ "process/resize", "cols", "1", SIZE, REQUIRED },
	{ "process/snapshot", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/forward", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/forward", "port", "1", SIZE, REQUIRED },
	{ "process/forward", "of", "\"p\"", STRING, OPTIONAL },
	{ "process/forward", "host", "\"::1\"", ENUM, OPTIONAL },
	{ "process/wait", "processId", "\"p\"", STRING, REQUIRED },
	{ "process/wait", "timeoutMs", "1", U64, OPTIONAL },
	{ "command/exec", "argv", "[\"a\"]", LIST, REQUIRED },
	{ "command/exec", "cwd", "\"/\"", ABSOLUTE, REQUIRED },
	{ "command/exec", "env", "{}", MAP, REQUIRED },
	{ "command/exec", "tty", "true", BOOL, REQUIRED },
	{ "command/exec", "arg0", "\"a\"", STRING, OPTIONAL },
	{ "command/exec/write", "sessionId", "\"s\"", STRING, REQUIRED },
	{ "command/exec/write", "chunk", "\"AA==\"", BASE64, REQUIRED },
	{ "command/exec/terminate", "sessionId", "\"s\"", STRING, REQUIRED },
	{ "fs/readFile", "path", URI, PATH, REQUIRED },
	{ "fs/readFile", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/writeFile", "path", URI, PATH, REQUIRED },
	{ "fs/writeFile", "dataBase64", "\"AA==\"", STRING, REQUIRED },
	{ "fs/writeFile", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/createDirectory", "path", URI, PATH, REQUIRED },
	{ "fs/createDirectory", "recursive", "false", BOOL, OPTIONAL },
	{ "fs/createDirectory", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/getMetadata", "path", URI, PATH, REQUIRED },
	{ "fs/getMetadata", "details", "true", BOOL, OPTIONAL },
	{ "fs/getMetadata", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/canonicalize", "path", URI, PATH, REQUIRED },
	{ "fs/canonicalize", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/readDirectory", "path", URI, PATH, REQUIRED },
	{ "fs/readDirectory", "details", "true", BOOL, OPTIONAL },
	{ "fs/readDirectory", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/walk", "path", URI, PATH, REQUIRED },
	{ "fs/walk", "options", WALK, OBJECT, REQUIRED },
	{ "fs/walk", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/remove", "path", URI, PATH, REQUIRED },
	{ "fs/remove", "recursive", "false", BOOL, OPTIONAL },
	{ "fs/remove", "force", "false", BOOL, OPTIONAL },
	{ "fs/remove", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/copy", "sourcePath", URI, PATH, REQUIRED },
	{ "fs/copy", "destinationPath", URI, PATH, REQUIRED },
	{ "fs/copy", "recursive", "true", BOOL, REQUIRED },
	{ "fs/copy", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/move", "sourcePath", URI, PATH, REQUIRED },
	{ "fs/move", "destinationPath", URI, PATH, REQUIRED },
	{ "fs/move", "overwrite", "true", BOOL, OPTIONAL },
	{ "fs/move", "keepAttributes", "true", BOOL, OPTIONAL },
	{ "fs/move", "mode", "1", MODE, OPTIONAL },
	{ "fs/move", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/chmod", "path", URI, PATH, REQUIRED },
	{ "fs/chmod", "mode", "1", MODE, REQUIRED },
	{ "fs/chmod", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/setTimes", "path", URI, PATH, REQUIRED },
	{ "fs/setTimes", "modifiedAtMs", "1", TIME, REQUIRED },
	{ "fs/setTimes", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/symlink", "path", URI, PATH, REQUIRED },
	{ "fs/symlink", "target", "\"t\"", TEXT, REQUIRED },
	{ "fs/symlink", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/open", "handleId", "\"h\"", STRING, REQUIRED },
	{ "fs/open", "path", URI, PATH, REQUIRED },
	{ "fs/open", "mode", "\"replace\"", ENUM, DEFAULT },
	{ "fs/open", "append", "false", BOOL, OPTIONAL },
	{ "fs/open", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/readBlock", "handleId", "\"h\"", STRING, REQUIRED },
	{ "fs/readBlock", "offset", "1", U64, REQUIRED },
	{ "fs/readBlock", "len", "1", U64, REQUIRED },
	{ "fs/writeBlock", "handleId", "\"h\"", STRING, REQUIRED },
	{ "fs/writeBlock", "offset", "1", U64, REQUIRED },
	{ "fs/writeBlock", "chunk", "\"AA==\"", BASE64, REQUIRED },
	{ "fs/close", "handleId", "\"h\"", STRING, REQUIRED },
	{ "fs/watch", "watchId", "1", U64, REQUIRED },
	{ "fs/watch", "path", URI, PATH, REQUIRED },
	{ "fs/watch", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "fs/unwatch", "watchId", "1", U64, REQUIRED },
	{ "fs/watchMissing", "watchId", "1", U64, REQUIRED },
	{ "fs/watchMissing", "missing", "[" URI "]", PATHS, REQUIRED },
	{ "fs/watchMissing", "present", URI, PATH, OPTIONAL },
	{ "environmentConfig/read", "cwd", URI, PATH, REQUIRED },
	{ "environmentConfig/read", "configPaths", "[[\"a\"]]", KEYS,
	    REQUIRED },
	{ "environmentConfig/read", "requirementsPaths", "[[\"a\"]]", KEYS,
	    REQUIRED },
	{ "capabilities/discoverV2", "cwd", URI, PATH, REQUIRED },
	{ "capabilities/discoverV2", "sandbox", SANDBOX, OBJECT, OPTIONAL },
	{ "capabilityRoots/discoverV1", "roots", "[]", ROOTS, REQUIRED },
	{ "http/request", "method", "\"GET\"", STRING, REQUIRED },
	{ "http/request", "url", "\"http://h/\"", STRING, REQUIRED },
	{ "http/request", "headers", HEADERS, HEADER_LIST, DEFAULT },
	{ "http/request", "bodyBase64", "\"AA==\"", BASE64, OPTIONAL },
	{ "http/request", "timeoutMs", "1", U64, OPTIONAL },
	{ "http/request", "redirectPolicy", "\"stop\"", ENUM, DEFAULT },
	{ "http/request", "requestId", "\"r\"", STRING, REQUIRED },
	{ "http/request", "streamResponse", "true", BOOL, DEFAULT },
};

/* The params of f's method with f's value replaced, NULL: left out; and with
 * members that nobody knows. */
static char *
params_with(const struct field *f, const char *value)
{
	char *text = xstrdup("{\"zz\":{\"deep\":[null]}");

	for (const struct field *m = fields; m < fields + nitems(fields); m++) {
		const char *v = m == f ? value : m->good;
		char *longer;

		if (strcmp(m->method, f->method) != 0 || v == NULL)
			continue;
		longer = xasprintf("%s,\"%s\":%s", text, m->key, v);
		free(text);
		text = longer;
	}
	text = xreallocarray(text, strlen(text) + 2, 1);
	return strcat(text, "}");
}

/* NULL: it must pass. Else the error, "... " as a prefix. */
static void
check(const struct field *f, const char *value, const char *error)
{
	_cleanup_free_ char *params = params_with(f, value);
	struct decoded d;
	int r = decode_params(&d, f->method, params);

	if (error == NULL ? r != 0
			  : r != -EBADMSG || !error_matches(d.error, error))
		fail_msg("%s %s: %d, %s, expected %s", f->method, params, r,
		    d.error, error ? error : "success");
	decoded_clear(&d);
}

static void
test_good(void **state)
{
	for (size_t i = 0; i < nitems(fields); i++)
		check(&fields[i], fields[i].good, NULL);
}

static void
test_missing(void **state)
{
	for (size_t i = 0; i < nitems(fields); i++) {
		char error[64];

		snprintf(
		    error, sizeof(error), "missing field `%s`", fields[i].key);
		check(&fields[i], NULL,
		    fields[i].need == REQUIRED ? error : NULL);
	}
}

/* KIND and an example of each, and the types it is right for. */
static const struct kind {
	const char *example, *name;
	unsigned right;
} kinds[] = {
	{ "true", "boolean `true`", 1u << BOOL },
	{ "false", "boolean `false`", 1u << BOOL },
	{ "7", "number", 1u << U64 | 1u << SIZE | 1u << MODE | 1u << TIME },
	{ "-1.5e99", "number",
	    1u << U64 | 1u << SIZE | 1u << MODE | 1u << TIME },
	{ "\"x\"", "string \"x\"",
	    1u << STRING | 1u << TEXT | 1u << ABSOLUTE | 1u << PATH |
		1u << BASE64 | 1u << ENUM },
	{ "[]", "sequence",
	    1u << LIST | 1u << PATHS | 1u << HEADER_LIST | 1u << ROOTS |
		1u << KEYS },
	{ "{}", "map", 1u << MAP | 1u << OBJECT },
};

/* What is expected; of structures and maps for enums only the beginning. */
static const char *const expected[] = {
	[STRING] = "a string",
	[BOOL] = "a boolean",
	[U64] = "u64",
	[SIZE] = "u64",
	[MODE] = "u64",
	[TIME] = "u64",
	[TEXT] = "a string",
	[ABSOLUTE] = "a string",
	[LIST] = "a sequence",
	[PATHS] = "a sequence",
	[HEADER_LIST] = "a sequence",
	[ROOTS] = "a sequence",
	[KEYS] = "a sequence",
	[MAP] = "a map",
	[PATH] = "a string",
	[BASE64] = "a string",
	[ENUM] = "string or map",
	[OBJECT] = "struct ",
};

static void
check_kind(const struct field *f, const char *example, const char *kind)
{
	char error[128];

	snprintf(error, sizeof(error), "invalid type: %s, expected %s", kind,
	    expected[f->type]);
	/* A map may be an enum in another form (quirk Q19); refused it is. */
	if (f->type == ENUM && example[0] == '{')
		error[0] = '\0';
	check(f, example, error);
}

static void
test_wrong_type(void **state)
{
	for (size_t i = 0; i < nitems(fields); i++)
		for (size_t k = 0; k < nitems(kinds); k++)
			if (!(kinds[k].right >> fields[i].type & 1))
				check_kind(&fields[i], kinds[k].example,
				    kinds[k].name);
}

static void
test_null(void **state)
{
	for (size_t i = 0; i < nitems(fields); i++) {
		if (fields[i].need == OPTIONAL)
			check(&fields[i], "null", NULL);
		else
			check_kind(&fields[i], "null", "null");
	}
}

/* A value of the right type that is wrong nevertheless. */
static const struct value_row {
	enum type type;
	const char *value, *error;
} value_rows[] = {
	{ U64, "0", NULL },
	{ U64, "18446744073709551615", NULL },
	{ U64, "18446744073709551616", "invalid number" },
	{ U64, "-1", "invalid number" },
	{ U64, "1.5", "invalid number" },
	{ U64, "1.0", "invalid number" },
	{ U64, "1e2", "invalid number" },
	{ SIZE, "1", NULL },
	{ SIZE, "65535", NULL },
	{ SIZE, "0", "" },
	{ SIZE, "65536", "" },
	{ SIZE, "-1", "invalid number" },
	{ SIZE, "1.5", "invalid number" },
	{ MODE, "0", NULL },
	{ MODE, "4095", NULL },
	{ MODE, "4096", "mode must be between 0 and 4095" },
	{ MODE, "-1", "invalid number" },
	{ TIME, "253402300799999", NULL },
	{ TIME, "253402300800000",
	    "modifiedAtMs must be between 0 and 253402300799999" },
	{ ABSOLUTE, "\"/a b/..\"", NULL },
	{ ABSOLUTE, "\"a\"", "cwd must be an absolute path" },
	{ ABSOLUTE, "\"\"", "cwd must be an absolute path" },
	{ ABSOLUTE, "\"file:///a\"", "cwd must be an absolute path" },
	{ ABSOLUTE, "\"/a\\u0000\"", "cwd must be an absolute path" },
	{ TEXT, "\"/a b\"", NULL },
	{ TEXT, "\"\"", "target must be text without a NUL byte" },
	{ TEXT, "\"a\\u0000b\"", "target must be text without a NUL byte" },
	{ STRING, "\"\\u0000\xc3\xbc\"", NULL },
	{ BASE64, "\"\"", NULL },
	{ BASE64, "\"!!!!\"", "Invalid symbol 33, offset 0." },
	{ BASE64, "\"Zg\"", "Invalid padding" },
	{ BASE64, "\"Zml=\"", "Invalid last symbol 108, offset 2." },
	{ BASE64, "\"Zm9v\\n\"", "Invalid symbol 10, offset 4." },
	{ BASE64, "\"__8=\"", "Invalid symbol 95, offset 0." },
	{ PATH, "\"file://host/x\"", NULL },
	{ PATH, "\"file:///C:/x\"", NULL },
	{ PATH, "\"/etc\"", "invalid URI: relative URL without a base" },
	{ PATH, "\"\"", "invalid URI: relative URL without a base" },
	{ PATH, "\"http://x\"", "unsupported path URI scheme `http`" },
	{ PATH, "\"file:///a?\"",
	    "query parameters are not allowed in path URIs" },
	{ PATH, "\"file:///x%00\"", "'file:///x%00' is invalid on 'linux'" },
	{ LIST, "[\"\",\"\\u0000\"]", NULL },
	{ LIST, "[\"a\",7]", "invalid type: number, expected a string" },
	{ LIST, "[null,7]", "invalid type: null, expected a string" },
	{ LIST, "[[\"a\"]]", "invalid type: sequence, expected a string" },
	{ HEADER_LIST, "[]", NULL },
	{ HEADER_LIST, "[{\"name\":\"a\",\"value\":\"\",\"valueEnvVar\":null}]",
	    NULL },
	{ HEADER_LIST, "[{\"name\":\"a\"}]", "missing field `value`" },
	{ HEADER_LIST, "[{\"name\":1,\"value\":\"\"}]",
	    "invalid type: number, expected a string" },
	{ HEADER_LIST, "[7]",
	    "invalid type: number, expected struct HttpHeader" },
	{ ROOTS, "[]", NULL },
	{ ROOTS, "[{\"id\":\"\",\"path\":" URI ",\"sandbox\":null}]", NULL },
	{ ROOTS, "[7]",
	    "invalid type: number, expected struct WireCapabilityRoot" },
	{ ROOTS, "[{\"id\":\"\"}]", "missing field `path`" },
	{ ROOTS, "[{\"id\":\"\",\"path\":7}]",
	    "invalid type: number, expected a string" },
	{ KEYS, "[]", NULL },
	{ KEYS, "[[\"\",\"a.b\"],[\"c\"]]", NULL },
	{ KEYS, "[[\"a\"],[]]",
	    "TOML paths must contain at least one key segment" },
	{ KEYS, "[\"a\"]", "invalid type: string \"a\", expected a sequence" },
	{ KEYS, "[[7]]", "invalid type: number, expected a string" },
	{ PATHS, "[]", NULL },
	{ PATHS, "[" URI ",7]", "invalid type: number, expected a string" },
	{ PATHS, "[\"/a\"]", "invalid URI: relative URL without a base" },
	{ MAP, "{\"\":\"\",\"a=\":\"b\"}", NULL },
	{ MAP, "{\"a\":null}", "invalid type: null, expected a string" },
	{ MAP, "{\"a\":\"b\",\"c\":{}}",
	    "invalid type: map, expected a string" },
};

static void
test_values(void **state)
{
	for (size_t i = 0; i < nitems(fields); i++)
		for (size_t k = 0; k < nitems(value_rows); k++)
			if (value_rows[k].type == fields[i].type)
				check(&fields[i], value_rows[k].value,
				    value_rows[k].error);
}

/* params as a whole, for every method that takes any. */
static void
test_no_object(void **state)
{
	static const struct {
		const char *params, *kind;
	} rows[] = { { NULL, "null" }, { "null", "null" }, { "7", "number" },
		{ "true", "boolean `true`" }, { "\"x\"", "string \"x\"" } };

	for (size_t i = 0; i < nitems(fields) * nitems(rows); i++) {
		const char *method = fields[i / nitems(rows)].method;
		char error[64];
		struct decoded d;

		snprintf(error, sizeof(error),
		    "invalid type: %s, expected struct ",
		    rows[i % nitems(rows)].kind);
		if (decode_params(&d, method, rows[i % nitems(rows)].params) !=
			-EBADMSG ||
		    !error_matches(d.error, error))
			fail_msg("%s: %s, expected %s", method, d.error, error);
		decoded_clear(&d);
	}
}

/* Of an empty object the first member is missing; an array is refused. */
static void
test_empty(void **state)
{
	for (size_t i = 0; i < nitems(fields); i++) {
		struct decoded d;
		char error[64];

		assert_int_equal(
		    decode_params(&d, fields[i].method, "[]"), -EBADMSG);
		assert_string_not_equal(d.error, "");
		decoded_clear(&d);
		if (i > 0 && !strcmp(fields[i].method, fields[i - 1].method))
			continue;
		snprintf(
		    error, sizeof(error), "missing field `%s`", fields[i].key);
		assert_int_equal(
		    decode_params(&d, fields[i].method, "{}"), -EBADMSG);
		assert_string_equal(d.error, error);
		decoded_clear(&d);
	}
}

/* No method is forgotten above. */
static void
test_every_method(void **state)
{
	for (size_t i = 0; i < nitems(methods); i++) {
		/* what may be absent as a whole is tested elsewhere */
		bool found = !strncmp(methods[i].wire, "environment/", 12) ||
			     !strcmp(methods[i].wire, "session/end") ||
			     !strcmp(methods[i].wire, "session/list") ||
			     !strcmp(methods[i].wire, "process/list");

		for (size_t k = 0; k < nitems(fields); k++)
			found |= !strcmp(fields[k].method, methods[i].wire);
		if (!found)
			fail_msg("%s has no rows", methods[i].wire);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_wrong_type),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_no_object),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_every_method),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
