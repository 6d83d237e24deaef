/* SPDX-License-Identifier: ISC */
/*
 * params: the values that come out, and their defaults.
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
#include "params_shown.h"

#define START(more)                                                              \
	"{\"processId\":\"p\",\"argv\":[\"a\",\"\"],\"cwd\":\"file:///w/../x\"," \
	"\"env\":{\"K\":\"v\"},\"tty\":true" more "}"
#define START_SHOWN "[\"p\",[\"a\",\"\"],\"/x\",{\"K\":\"v\"},true"
#define POLICY(inherit, ignore)                                                \
	",\"envPolicy\":{\"inherit\":\"" inherit                               \
	"\",\"ignoreDefaultExcludes\":" ignore                                 \
	",\"exclude\":[\"E*\"],\"set\":{\"S\":\"1\"},\"includeOnly\":[\"I\"]}"
#define SANDBOX(type)                                                          \
	"\"sandbox\":{\"permissions\":{\"type\":\"" type "\"},"                \
	"\"windowsSandboxLevel\":\"disabled\"}"
#define WALK(more)                                                             \
	"{\"path\":\"file:a\",\"options\":{\"maxDepth\":0,"                    \
	"\"maxDirectories\":2,\"maxEntries\":18446744073709551615,"            \
	"\"followDirectorySymlinks\":true" more "}}"
#define PATH_A "{\"path\":\"file:///a\""

static void
show_list(struct json_writer *w, const struct json_value *v)
{
	struct json_value copy = *v;

	copy.key = (struct slice){ NULL, 0 };
	show_value(w, &copy);
}

static void
show_policy(struct json_writer *w, const struct process_start_params *s)
{
	if (!s->has_env_policy)
		return;
	json_u64(w, s->env_policy.inherit);
	json_bool(w, s->env_policy.ignore_default_excludes);
	show_list(w, s->env_policy.exclude);
	show_list(w, s->env_policy.set);
	show_list(w, s->env_policy.include_only);
}

static void
show_start(struct json_writer *w, const union method_params *p)
{
	const struct process_start_params *s = &p->process_start;

	show_slice(w, s->process_id);
	show_list(w, s->argv);
	json_cstring(w, s->cwd.foreign ? "FOREIGN" : s->cwd.path);
	show_list(w, s->env);
	json_bool(w, s->tty);
	json_bool(w, s->pipe_stdin);
	if (s->has_arg0)
		show_slice(w, s->arg0);
	show_policy(w, s);
	json_bool(w, s->has_sandbox);
	json_bool(w, s->enforce_managed_network);
	json_bool(w, s->has_managed_network);
	json_bool(w, s->network.given && !s->network.own);
	json_bool(w, s->snapshot.given);
}

static void
show_read(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_read.process_id);
	json_u64(w, p->process_read.after_seq);
	json_u64(w, p->process_read.max_bytes);
	json_u64(w, p->process_read.wait_ms);
}

static void
show_write(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_write.process_id);
	show_slice(w, p->process_write.chunk);
	show_slice(w, p->process_write.write_id);
}

static void
show_signal(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_signal.process_id);
}

static void
show_terminate(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->process_terminate.process_id);
}

static void
show_initialize(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->initialize.client_name);
	json_bool(w, p->initialize.resume);
	if (p->initialize.resume)
		show_slice(w, p->initialize.resume_session_id);
}

static void
show_path(struct json_writer *w, const union method_params *p)
{
	json_cstring(w, p->fs.path.foreign ? "FOREIGN" : p->fs.path.path);
	json_bool(w, p->fs.has_sandbox);
}

static void
show_write_file(struct json_writer *w, const union method_params *p)
{
	show_path(w, p);
	show_slice(w, p->fs.data);
}

static void
show_recursive(struct json_writer *w, const union method_params *p)
{
	show_path(w, p);
	json_bool(w, p->fs.recursive);
	json_bool(w, p->fs.force);
}

static void
show_copy(struct json_writer *w, const union method_params *p)
{
	show_path(w, p);
	json_cstring(w, p->fs.destination.path);
	json_bool(w, p->fs.recursive);
}

static void
show_walk(struct json_writer *w, const union method_params *p)
{
	show_path(w, p);
	json_u64(w, p->fs.walk.max_depth);
	json_u64(w, p->fs.walk.max_directories);
	json_u64(w, p->fs.walk.max_entries);
	json_bool(w, p->fs.walk.follow_symlinks);
	json_bool(w, p->fs.walk.prune_hidden);
}

static void
show_open(struct json_writer *w, const union method_params *p)
{
	show_path(w, p);
	show_slice(w, p->fs.handle_id);
	json_bool(w, p->fs.replace);
	if (p->fs.append)
		json_cstring(w, "append");
}

static void
show_block(struct json_writer *w, const union method_params *p)
{
	show_slice(w, p->fs.handle_id);
	json_u64(w, p->fs.offset);
	json_u64(w, p->fs.len);
	show_slice(w, p->fs.data);
}

static const struct value_row value_rows[] = {
	{ "initialize", show_initialize, "{\"clientName\":\"\"}",
	    "[\"\",false]" },
	{ "initialize", show_initialize,
	    "{\"clientName\":\"c\",\"resumeSessionId\":null}",
	    "[\"c\",false]" },
	{ "initialize", show_initialize,
	    "{\"resumeSessionId\":\"\",\"clientName\":\"c\"}",
	    "[\"c\",true,\"\"]" },
	/* process/start: pipeStdin [arg0] [policy] sandbox and networks */
	{ "process/start", show_start, START(""),
	    START_SHOWN ",false,false,false,false,false,false]" },
	{ "process/start", show_start,
	    START(",\"pipeStdin\":true,\"arg0\":\"\","
		  "\"enforceManagedNetwork\":true,\"managedNetwork\":{},"
		  "\"metadata\":7"),
	    START_SHOWN ",true,\"\",false,true,true,false,false]" },
	{ "process/start", show_start,
	    START(
		",\"arg0\":null,\"sandbox\":null,\"envPolicy\":null,"
		"\"managedNetwork\":null,\"networkProxy\":{\"proxy\":{\"a\":1}},"
		"\"shellSnapshot\":null"),
	    START_SHOWN ",false,false,false,false,true,false]" },
	{ "process/start", show_start,
	    START(
		"," SANDBOX("disabled") ",\"shellSnapshot\":{\"scopeId\":\"s\","
					"\"shell\":{\"name\":\"bash\","
					"\"path\":\"/b\"}}"),
	    START_SHOWN ",false,true,false,false,false,true]" },
	{ "process/start", show_start, START(POLICY("core", "true")),
	    START_SHOWN ",false,0,true,[\"E*\"],{\"S\":\"1\"},[\"I\"],"
			"false,false,false,false,false]" },
	{ "process/start", show_start, START(POLICY("all", "false")),
	    START_SHOWN ",false,1,false,[\"E*\"],{\"S\":\"1\"},[\"I\"],"
			"false,false,false,false,false]" },
	{ "process/start", show_start, START(POLICY("none", "false")),
	    START_SHOWN ",false,2,false,[\"E*\"],{\"S\":\"1\"},[\"I\"],"
			"false,false,false,false,false]" },
	{ "process/start", show_start,
	    "{\"tty\":false,\"env\":{},\"cwd\":\"file://h/x\",\"argv\":[],"
	    "\"processId\":\"\"}",
	    "[\"\",[],\"FOREIGN\",{},false,false,false,false,false,false,"
	    "false]" },
	{ "process/read", show_read, "{\"processId\":\"p\"}",
	    "[\"p\",0,18446744073709551615,0]" },
	{ "process/read", show_read,
	    "{\"processId\":\"p\",\"afterSeq\":null,\"maxBytes\":null,"
	    "\"waitMs\":null}",
	    "[\"p\",0,18446744073709551615,0]" },
	{ "process/read", show_read,
	    "{\"waitMs\":18446744073709551615,\"maxBytes\":0,\"afterSeq\":3,"
	    "\"processId\":\"\\u0070\"}",
	    "[\"p\",3,0,18446744073709551615]" },
	{ "process/write", show_write,
	    "{\"processId\":\"p\",\"chunk\":\"Zm9v\",\"writeId\":\"w\"}",
	    "[\"p\",\"foo\",\"w\"]" },
	{ "process/write", show_write,
	    "{\"processId\":\"\",\"chunk\":\"AA==\",\"writeId\":\" \"}",
	    "[\"\",\"\\u0000\",\" \"]" },
	{ "process/signal", show_signal,
	    "{\"processId\":\"p\",\"signal\":\"interrupt\"}", "[\"p\"]" },
	{ "process/terminate", show_terminate, "{\"processId\":\"p\"}",
	    "[\"p\"]" },
	/* fs: the path, whether there is a sandbox, the rest */
	{ "fs/readFile", show_path, PATH_A "}", "[\"/a\",false]" },
	{ "fs/readFile", show_path, PATH_A ",\"sandbox\":null}",
	    "[\"/a\",false]" },
	{ "fs/readFile", show_path, PATH_A "," SANDBOX("disabled") "}",
	    "[\"/a\",true]" },
	{ "fs/getMetadata", show_path, "{\"path\":\"file:///C:/x\"}",
	    "[\"FOREIGN\",false]" },
	{ "fs/canonicalize", show_path, "{\"path\":\"file:///a%20b/\"}",
	    "[\"/a b\",false]" },
	{ "fs/readDirectory", show_path, "{\"path\":\"file:\"}",
	    "[\"/\",false]" },
	/* not decoded before it is written (quirk Q23) */
	{ "fs/writeFile", show_write_file, PATH_A ",\"dataBase64\":\"Zg\"}",
	    "[\"/a\",false,\"Zg\"]" },
	{ "fs/createDirectory", show_recursive, PATH_A "}",
	    "[\"/a\",false,true,false]" },
	{ "fs/createDirectory", show_recursive, PATH_A ",\"recursive\":null}",
	    "[\"/a\",false,true,false]" },
	{ "fs/createDirectory", show_recursive, PATH_A ",\"recursive\":false}",
	    "[\"/a\",false,false,false]" },
	{ "fs/remove", show_recursive, PATH_A "}", "[\"/a\",false,true,true]" },
	{ "fs/remove", show_recursive, PATH_A ",\"force\":false}",
	    "[\"/a\",false,true,false]" },
	{ "fs/remove", show_recursive,
	    PATH_A ",\"recursive\":false,\"force\":null}",
	    "[\"/a\",false,false,true]" },
	{ "fs/copy", show_copy,
	    "{\"sourcePath\":\"file:///s\",\"destinationPath\":\"file:///d\","
	    "\"recursive\":true}",
	    "[\"/s\",false,\"/d\",true]" },
	{ "fs/copy", show_copy,
	    "{\"recursive\":false,\"destinationPath\":\"file:///d\","
	    "\"sourcePath\":\"file:///s\"}",
	    "[\"/s\",false,\"/d\",false]" },
	{ "fs/walk", show_walk, WALK(""),
	    "[\"/a\",false,0,2,18446744073709551615,true,false]" },
	{ "fs/walk", show_walk, WALK(",\"pruneHiddenDirectories\":true"),
	    "[\"/a\",false,0,2,18446744073709551615,true,true]" },
	{ "fs/open", show_open, PATH_A ",\"handleId\":\"\"}",
	    "[\"/a\",false,\"\",false]" },
	{ "fs/open", show_open, PATH_A ",\"handleId\":\"h\",\"mode\":\"read\"}",
	    "[\"/a\",false,\"h\",false]" },
	{ "fs/open", show_open,
	    PATH_A ",\"handleId\":\"h\",\"mode\":\"replace\"}",
	    "[\"/a\",false,\"h\",true]" },
	{ "fs/open", show_open,
	    PATH_A ",\"handleId\":\"h\",\"mode\":\"replace\",\"append\":true}",
	    "[\"/a\",false,\"h\",true,\"append\"]" },
	{ "fs/readBlock", show_block,
	    "{\"handleId\":\"h\",\"offset\":5,\"len\":18446744073709551615}",
	    "[\"h\",5,18446744073709551615,\"\"]" },
	{ "fs/writeBlock", show_block,
	    "{\"handleId\":\"h\",\"offset\":7,\"chunk\":\"Zm8=\"}",
	    "[\"h\",7,0,\"fo\"]" },
	{ "fs/close", show_block, "{\"handleId\":\"h\",\"offset\":\"x\"}",
	    "[\"h\",0,0,\"\"]" },
};

static void
test_values(void **state)
{
	check_values(value_rows, nitems(value_rows));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
