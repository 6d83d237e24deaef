/* SPDX-License-Identifier: ISC */
/*
 * Encodes and decodes the dialect of the reference runner.
 */
#include "runner_v1.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RUNNER_V1_VERSION 1

/* Older parents omit members that are false or unset. */
static bool
opt_bool(struct args *a, const char *key)
{
	return args_default_bool(a, key, false);
}

static void
check_absolute(struct args *a, const char *key, struct slice path)
{
	if (args_end(a) == 0 && (path.len == 0 || path.ptr[0] != '/' ||
				    memchr(path.ptr, '\0', path.len) != NULL))
		args_fail(a, "%s: expected an absolute path", key);
}

static void
decode_spawn(struct args *a, struct runner_v1_spawn *s)
{
	const struct json_value *timeout;

	s->command = args_strings(a, "command");
	s->cwd = args_string(a, "cwd");
	s->env = args_string_map(a, "env");
	/* Absent, null or empty is an error; it never means "no sandbox". */
	s->policy = args_string(a, "policy_json_or_preset");
	if (args_end(a) == 0 && s->policy.len == 0)
		args_fail(a, "policy_json_or_preset must not be empty");
	args_opt_string(a, "sandbox_policy_cwd", &s->policy_cwd);
	timeout = json_get(a->object, "timeout_ms");
	s->has_timeout = timeout != NULL && timeout->type != JSON_NULL;
	s->timeout_ms = args_opt_u64(a, "timeout_ms", 0);
	s->tty = opt_bool(a, "tty");
	s->stdin_open = opt_bool(a, "stdin_open");
	check_absolute(a, "cwd", s->cwd);
	if (s->policy_cwd.len > 0)
		check_absolute(a, "sandbox_policy_cwd", s->policy_cwd);
	if (args_end(a) == 0 && s->command->count == 0)
		args_fail(a, "command must not be empty");
}

static int
finish(const struct args *a, char *error)
{
	if (args_end(a) == 0)
		return 0;
	snprintf(error, ARGS_ERROR_MAX, "%s", a->error);
	return -EBADMSG;
}

int
runner_v1_parse(
    struct runner_v1_message *m, const char *text, size_t len, char *error)
{
	static const char *const types[] = { "spawn_request", "stdin",
		"terminate", NULL };
	const struct json_value *payload;
	struct args a;
	uint64_t version;

	*m = (struct runner_v1_message){ 0 };
	if (json_parse(&m->doc, text, len) < 0) {
		snprintf(error, ARGS_ERROR_MAX, "%s", m->doc.error);
		return -EBADMSG;
	}
	args_init(&a, &m->doc, m->doc.root, "FramedMessage");
	version = args_u64(&a, "version");
	m->type = (enum runner_v1_type)args_enum(&a, "type", types);
	payload = args_object(&a, "payload", "Payload");
	if (args_end(&a) == 0 && version != RUNNER_V1_VERSION)
		args_fail(&a, "unsupported version %llu, expected %d",
		    (unsigned long long)version, RUNNER_V1_VERSION);
	if (finish(&a, error) < 0)
		return -EBADMSG;
	args_init(&a, &m->doc, payload, "Payload");
	if (m->type == RUNNER_V1_SPAWN_REQUEST)
		decode_spawn(&a, &m->spawn);
	else if (m->type == RUNNER_V1_STDIN)
		m->stdin_bytes = args_base64(&a, "data_b64");
	return finish(&a, error);
}

void
runner_v1_clear(struct runner_v1_message *m)
{
	json_clear(&m->doc);
}

static void
begin(struct json_writer *w, const char *type)
{
	json_begin(w, '{');
	json_key_u64(w, "version", RUNNER_V1_VERSION);
	json_key_cstring(w, "type", type);
	json_key(w, "payload");
	json_begin(w, '{');
}

static void
end(struct json_writer *w)
{
	json_end(w, '}');
	json_end(w, '}');
}

void
runner_v1_write_ready(struct json_writer *w, int64_t process_id)
{
	begin(w, "spawn_ready");
	json_key_i64(w, "process_id", process_id);
	end(w);
}

void
runner_v1_write_output(
    struct json_writer *w, const char *stream, const void *data, size_t len)
{
	begin(w, "output");
	json_key(w, "data_b64");
	json_base64(w, data, len);
	json_key_cstring(w, "stream", stream);
	end(w);
}

void
runner_v1_write_exit(struct json_writer *w, int exit_code, bool timed_out)
{
	begin(w, "exit");
	json_key_i64(w, "exit_code", exit_code);
	json_key_bool(w, "timed_out", timed_out);
	end(w);
}

void
runner_v1_write_error(
    struct json_writer *w, const char *message, const char *code)
{
	begin(w, "error");
	json_key_cstring(w, "message", message);
	json_key_cstring(w, "code", code);
	end(w);
}
