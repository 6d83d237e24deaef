/* SPDX-License-Identifier: ISC */
#include "frames.h"

/* Older parents omit members that are false or unset. */
static bool
opt_bool(struct args *a, const char *key)
{
	return args_default_bool(a, key, false);
}

struct decoder {
	struct args *a;
	frames_path_fn *is_absolute;
};

static void
check_absolute(const struct decoder *d, const char *key, struct slice path)
{
	if (args_end(d->a) == 0 &&
	    (path.len == 0 || memchr(path.ptr, '\0', path.len) != NULL ||
		!d->is_absolute(path)))
		args_fail(d->a, "%s: expected an absolute path", key);
}

/* The list may be absent, and is empty then. */
static void
decode_sids(struct args *a, struct frames_spawn *s)
{
	if (args_end(a) < 0 || json_get(a->object, "cap_sids") == NULL)
		return;
	s->cap_sids = args_strings(a, "cap_sids");
	if (args_end(a) == 0 && s->cap_sids->count > FRAMES_SIDS_MAX)
		args_fail(a, "cap_sids: %zu SIDs, at most %d are permitted",
		    s->cap_sids->count, FRAMES_SIDS_MAX);
}

/* Absent, null or empty is an error; it never means "no sandbox". */
static void
decode_old_policy(const struct decoder *d, struct frames_spawn *s)
{
	struct args *a = d->a;

	s->policy = args_string(a, "policy_json_or_preset");
	if (args_end(a) == 0 && s->policy.len == 0)
		args_fail(a, "policy_json_or_preset must not be empty");
	args_opt_string(a, "sandbox_policy_cwd", &s->policy_cwd);
	if (s->policy_cwd.len > 0)
		check_absolute(d, "sandbox_policy_cwd", s->policy_cwd);
	decode_sids(a, s);
}

static void
decode_profile(const struct decoder *d, struct frames_spawn *s)
{
	struct args *a = d->a;
	const struct json_value *sid;

	s->profile = args_object(a, "permission_profile", "PermissionProfile");
	s->roots = args_strings(a, "workspace_roots");
	for (const struct json_value *v = args_end(a) == 0 ? s->roots->first
							   : NULL;
	     v != NULL; v = v->next)
		check_absolute(d, "workspace_roots", v->text);
	decode_sids(a, s);
	if (args_end(a) == 0 && (s->cap_sids == NULL || !s->cap_sids->count))
		args_fail(a, "cap_sids must not be empty");
	s->desktop = args_string(a, "private_desktop_name");
	if (args_end(a) == 0 && s->desktop.len == 0)
		args_fail(a, "private_desktop_name must not be empty");
	sid = json_get(a->object, "network_proxy_restricting_sid");
	if (args_end(a) == 0 && sid != NULL && sid->type != JSON_NULL)
		args_fail(a, "network_proxy_restricting_sid: this runner "
			     "knows no such restriction");
}

static void
decode_spawn(const struct decoder *d, struct frames_spawn *s, unsigned version)
{
	struct args *a = d->a;
	const struct json_value *timeout;

	s->command = args_strings(a, "command");
	s->cwd = args_string(a, "cwd");
	s->env = args_string_map(a, "env");
	if (version == FRAMES_OLD)
		decode_old_policy(d, s);
	else
		decode_profile(d, s);
	timeout = json_get(a->object, "timeout_ms");
	s->has_timeout = timeout != NULL && timeout->type != JSON_NULL;
	s->timeout_ms = args_opt_u64(a, "timeout_ms", 0);
	s->tty = opt_bool(a, "tty");
	s->stdin_open = opt_bool(a, "stdin_open");
	check_absolute(d, "cwd", s->cwd);
	if (args_end(a) == 0 && s->command->count == 0)
		args_fail(a, "command must not be empty");
}

static void
decode_resize(struct args *a, struct frames_message *m)
{
	const struct json_value *size = args_object(a, "size", "TerminalSize");
	struct args in;

	if (size == NULL)
		return;
	args_init(&in, a->doc, size, "TerminalSize");
	m->rows = (uint16_t)args_range(&in, "rows", 1, INT16_MAX);
	m->cols = (uint16_t)args_range(&in, "cols", 1, INT16_MAX);
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

static int
finish(const struct args *a, char *error)
{
	if (args_end(a) == 0)
		return 0;
	snprintf(error, ARGS_ERROR_MAX, "%s", a->error);
	return -EBADMSG;
}

static bool
is_spoken(uint64_t version)
{
	return version == FRAMES_OLD || version == FRAMES_NEW;
}

/* The last two types came after version 1. */
static void
check_version(struct args *a, const struct frames_message *m, uint64_t version)
{
	if (args_end(a) == 0 && !is_spoken(version))
		args_fail(a, "unsupported version %llu, expected %d or %d",
		    (unsigned long long)version, FRAMES_OLD, FRAMES_NEW);
	if (version == FRAMES_OLD && m->type >= FRAMES_CLOSE_STDIN)
		args_fail(a, "this type needs version %d", FRAMES_NEW);
}

static void
decode_payload(struct decoder *d, struct frames_message *m)
{
	switch (m->type) {
	case FRAMES_SPAWN_REQUEST:
		decode_spawn(d, &m->spawn, m->version);
		break;
	case FRAMES_STDIN:
		m->stdin_bytes = args_base64(d->a, "data_b64");
		break;
	case FRAMES_RESIZE:
		decode_resize(d->a, m);
		break;
	case FRAMES_TERMINATE:
	case FRAMES_CLOSE_STDIN:
		break;
	}
}

int
frames_parse(struct frames_message *m, frames_path_fn *is_absolute,
    const char *text, size_t len, char *error)
{
	static const char *const types[] = { "spawn_request", "stdin",
		"terminate", "close_stdin", "resize", NULL };
	const struct json_value *payload;
	struct args a;
	uint64_t version;

	*m = (struct frames_message){ 0 };
	if (json_parse(&m->doc, text, len) < 0) {
		snprintf(error, ARGS_ERROR_MAX, "%s", m->doc.error);
		return -EBADMSG;
	}
	args_init(&a, &m->doc, m->doc.root, "FramedMessage");
	version = args_u64(&a, "version");
	m->version = is_spoken(version) ? (unsigned)version : 0;
	m->type = (enum frames_type)args_enum(&a, "type", types);
	payload = args_object(&a, "payload", "Payload");
	check_version(&a, m, version);
	if (finish(&a, error) < 0)
		return -EBADMSG;
	args_init(&a, &m->doc, payload, "Payload");
	decode_payload(&(struct decoder){ &a, is_absolute }, m);
	return finish(&a, error);
}

void
frames_clear(struct frames_message *m)
{
	json_clear(&m->doc);
}

static void
begin(struct json_writer *w, unsigned version, const char *type)
{
	json_begin(w, '{');
	json_key_u64(w, "version", version);
	json_key_cstring(w, "type", type);
	json_key_begin(w, "payload", '{');
}

static void
end(struct json_writer *w)
{
	json_end(w, '}');
	json_end(w, '}');
}

void
frames_write_ready(struct json_writer *w, unsigned version, int64_t process_id)
{
	begin(w, version, "spawn_ready");
	json_key_i64(w, "process_id", process_id);
	end(w);
}

void
frames_write_output(struct json_writer *w, unsigned version, const char *stream,
    const void *data, size_t len)
{
	begin(w, version, "output");
	json_key_base64(w, "data_b64", data, len);
	json_key_cstring(w, "stream", stream);
	end(w);
}

void
frames_write_exit(
    struct json_writer *w, unsigned version, int64_t exit_code, bool timed_out)
{
	begin(w, version, "exit");
	json_key_i64(w, "exit_code", exit_code);
	json_key_bool(w, "timed_out", timed_out);
	end(w);
}

void
frames_write_error(
    struct json_writer *w, unsigned version, const struct frames_error *e)
{
	begin(w, version, "error");
	json_key_cstring(w, "message", e->message);
	json_key_cstring(w, "code", e->code);
	if (version == FRAMES_NEW) {
		json_key_cstring(w, "stage",
		    e->spawning ? "spawn_child" : "read_spawn_request");
		json_key(w, "windows_error_code");
		if (e->windows_error != 0)
			json_u64(w, e->windows_error);
		else
			json_null(w);
	}
	end(w);
}

void
frames_set_length(struct buf *frame)
{
	size_t len = frame->len - FRAMES_HEADER_BYTES;

	for (size_t i = 0; i < FRAMES_HEADER_BYTES; i++)
		frame->data[i] = (uint8_t)(len >> (8 * i));
}
