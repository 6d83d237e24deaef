/*
 * Messages of the control channels: one table says how each is laid out, one
 * loop writes them and one reads them. Both ends are execd's own programs of
 * the same build; the reader still trusts nothing.
 */
#include "control.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum field_kind {
	FIELD_BOOL,
	FIELD_U8,
	FIELD_U32,
	FIELD_U64,
	FIELD_BYTES,
	FIELD_STRING
};

struct field {
	enum field_kind kind;
	size_t offset;
	size_t size;
};

#define FIELD(kind, type, member)                                              \
	{                                                                      \
		kind, offsetof(struct type, member),                           \
		    sizeof(((struct type *)0)->member)                         \
	}

static const struct field configure_fields[] = {
	FIELD(FIELD_U32, control_configure, uid),
	FIELD(FIELD_U32, control_configure, gid),
	FIELD(FIELD_BOOL, control_configure, drop),
	FIELD(FIELD_U8, control_configure, helpers),
	FIELD(FIELD_U32, control_configure, ping_interval_ms),
	FIELD(FIELD_U32, control_configure, pong_deadline_ms),
	FIELD(FIELD_U32, control_configure, pre_auth_deadline_ms),
	FIELD(FIELD_U32, control_configure, max_connections),
	FIELD(FIELD_U32, control_configure, max_per_source),
	FIELD(FIELD_U32, control_configure, max_unauthenticated),
	FIELD(FIELD_U32, control_configure, penalty_auth_ms),
	FIELD(FIELD_U32, control_configure, penalty_deadline_ms),
	FIELD(FIELD_U32, control_configure, penalty_protocol_ms),
	FIELD(FIELD_U32, control_configure, penalty_crash_ms),
	FIELD(FIELD_U32, control_configure, penalty_threshold_ms),
	FIELD(FIELD_U32, control_configure, penalty_max_ms),
	FIELD(FIELD_U32, control_configure, exempt),
	FIELD(FIELD_BYTES, control_configure, exempt_nets),
	FIELD(FIELD_U64, control_configure, max_frame_bytes),
	FIELD(FIELD_U64, control_configure, max_message_bytes),
	FIELD(FIELD_U32, control_configure, listeners),
};

static const struct field listener_fields[] = {
	FIELD(FIELD_U32, control_listener, id),
	FIELD(FIELD_U8, control_listener, kind),
	FIELD(FIELD_BOOL, control_listener, tls),
	FIELD(FIELD_BOOL, control_listener, operate),
	FIELD(FIELD_U8, control_listener, client_certificate),
	FIELD(FIELD_U32, control_listener, key),
};

static const struct field ready_fields[] = {
	FIELD(FIELD_BOOL, control_ready, root_empty),
	FIELD(FIELD_BOOL, control_ready, landlock),
	FIELD(FIELD_BOOL, control_ready, seccomp),
	FIELD(FIELD_BOOL, control_ready, user_changed),
};

static const struct field authenticate_fields[] = {
	FIELD(FIELD_U32, control_authenticate, conn),
	FIELD(FIELD_U32, control_authenticate, listener),
	FIELD(FIELD_U8, control_authenticate, kind),
	FIELD(FIELD_BOOL, control_authenticate, has_certificate),
	FIELD(FIELD_U32, control_authenticate, voucher.listener),
	FIELD(FIELD_U64, control_authenticate, voucher.made_ms),
	FIELD(FIELD_BYTES, control_authenticate, voucher.digest),
	FIELD(FIELD_STRING, control_authenticate, voucher.subject),
	FIELD(FIELD_BYTES, control_authenticate, voucher.seal),
	FIELD(FIELD_STRING, control_authenticate, peer),
	FIELD(FIELD_STRING, control_authenticate, credential),
};

static const struct field refused_fields[] = {
	FIELD(FIELD_U32, control_refused, listener),
	FIELD(FIELD_STRING, control_refused, peer),
	FIELD(FIELD_STRING, control_refused, reason),
};

static const struct field verdict_fields[] = {
	FIELD(FIELD_U32, control_verdict, conn),
	FIELD(FIELD_U8, control_verdict, verdict),
	FIELD(FIELD_BYTES, control_verdict, grant),
};

static const struct field open_fields[] = {
	FIELD(FIELD_U32, control_open, conn),
	FIELD(FIELD_BYTES, control_open, grant),
};

static const struct field resume_fields[] = {
	FIELD(FIELD_U32, control_resume, conn),
	FIELD(FIELD_BYTES, control_resume, grant),
	FIELD(FIELD_STRING, control_resume, session_id),
};

static const struct field session_fields[] = {
	FIELD(FIELD_U32, control_session, conn),
	FIELD(FIELD_U8, control_session, result),
	FIELD(FIELD_STRING, control_session, session_id),
	FIELD(FIELD_STRING, control_session, reason),
};

static const struct field close_fields[] = {
	FIELD(FIELD_U32, control_close, conn),
	FIELD(FIELD_BOOL, control_close, channel_ended),
};

static const struct field closed_fields[] = {
	FIELD(FIELD_U32, control_closed, conn),
	FIELD(FIELD_U8, control_closed, end),
	FIELD(FIELD_STRING, control_closed, reason),
};

static const struct field runner_exited_fields[] = {
	FIELD(FIELD_U32, control_runner_exited, conn),
	FIELD(FIELD_STRING, control_runner_exited, reason),
};

static const struct field session_config_fields[] = {
	FIELD(FIELD_STRING, control_session_config, session_id),
	FIELD(FIELD_STRING, control_session_config, provider_id),
	FIELD(FIELD_STRING, control_session_config, shell),
	FIELD(FIELD_STRING, control_session_config, home),
	FIELD(FIELD_BOOL, control_session_config, pid_namespace),
	FIELD(FIELD_BOOL, control_session_config, door),
	FIELD(FIELD_U8, control_session_config, cgroups),
	FIELD(FIELD_U32, control_session_config, command_deadline_ms),
	FIELD(FIELD_U64, control_session_config, output_rate),
	FIELD(FIELD_BOOL, control_session_config, record_tty),
	FIELD(FIELD_BOOL, control_session_config, record_input),
	FIELD(FIELD_BOOL, control_session_config, record_required),
	FIELD(FIELD_U64, control_session_config, record_max_bytes),
	FIELD(FIELD_U32, control_session_config, closed_ttl_ms),
	FIELD(FIELD_U32, control_session_config, kill_grace_ms),
	FIELD(FIELD_U64, control_session_config, retention_bytes),
	FIELD(FIELD_U64, control_session_config, max_message_bytes),
};

static const struct field sandbox_fields[] = {
	FIELD(FIELD_U8, sandbox_limits, max_profile),
	FIELD(FIELD_BOOL, sandbox_limits, unsandboxed),
	FIELD(FIELD_BOOL, sandbox_limits, external),
	FIELD(FIELD_BOOL, sandbox_limits, network),
	FIELD(FIELD_BOOL, sandbox_limits, clamp),
	FIELD(FIELD_BOOL, sandbox_limits, accept_launch),
	FIELD(FIELD_STRING, sandbox_limits, workspace_roots),
	FIELD(FIELD_STRING, sandbox_limits, writable_roots),
	FIELD(FIELD_STRING, sandbox_limits, deny_read),
	FIELD(FIELD_STRING, sandbox_limits, hide),
	FIELD(FIELD_STRING, sandbox_limits, protected_names),
	FIELD(FIELD_U8, sandbox_limits, nested_git),
	FIELD(FIELD_U8, sandbox_limits, nested_git_depth),
	FIELD(FIELD_U8, sandbox_limits, environment),
	FIELD(FIELD_U8, sandbox_limits, tmp),
	FIELD(FIELD_U8, sandbox_limits, tmpdir),
	FIELD(FIELD_U8, sandbox_limits, unix_sockets),
	FIELD(FIELD_BOOL, sandbox_limits, allow_32bit),
	FIELD(FIELD_BOOL, sandbox_limits, allow_setid),
	FIELD(FIELD_BOOL, sandbox_limits, allow_nested_userns),
	FIELD(FIELD_U8, sandbox_limits, landlock_min_abi),
	FIELD(FIELD_BOOL, sandbox_limits, require_groups),
	FIELD(FIELD_U64, sandbox_limits, shm_bytes),
	FIELD(FIELD_U64, sandbox_limits, open_files),
	FIELD(FIELD_U64, sandbox_limits, file_bytes),
	FIELD(FIELD_U64, sandbox_limits, pids),
	FIELD(FIELD_U64, sandbox_limits, memory_bytes),
	FIELD(FIELD_U32, sandbox_limits, cpu_percent),
};

static const struct field template_start_fields[] = {
	FIELD(FIELD_BOOL, control_template_start, isolated),
	FIELD(FIELD_U32, control_template_start, uid),
	FIELD(FIELD_U32, control_template_start, gid),
	FIELD(FIELD_U8, control_template_start, joins),
};

static const struct field template_started_fields[] = {
	FIELD(FIELD_U32, control_template_started, pid),
	FIELD(FIELD_U32, control_template_started, error),
};

static const struct field attach_fields[] = {
	FIELD(FIELD_U32, control_attach, generation),
	FIELD(FIELD_STRING, control_attach, peer),
};

static const struct field detached_fields[] = {
	FIELD(FIELD_U32, control_detached, generation),
	FIELD(FIELD_U8, control_detached, end),
};

static const struct field started_fields[] = {
	FIELD(FIELD_STRING, control_started, process),
	FIELD(FIELD_U32, control_started, pid),
	FIELD(FIELD_BOOL, control_started, sandboxed),
	FIELD(FIELD_BOOL, control_started, tty),
	FIELD(FIELD_STRING, control_started, cwd),
	FIELD(FIELD_STRING, control_started, command),
	FIELD(FIELD_BOOL, control_started, command_cut),
	FIELD(FIELD_BOOL, control_started, asked.there),
	FIELD(FIELD_U8, control_started, asked.type),
	FIELD(FIELD_BOOL, control_started, asked.files),
	FIELD(FIELD_BOOL, control_started, asked.network),
	FIELD(FIELD_BOOL, control_started, enforced.there),
	FIELD(FIELD_BOOL, control_started, enforced.files),
	FIELD(FIELD_BOOL, control_started, enforced.network),
	FIELD(FIELD_U32, control_started, landlock_abi),
	FIELD(FIELD_U32, control_started, redacted),
	FIELD(FIELD_U32, control_started, start_us),
};

static const struct field ask_metrics_fields[] = {
	FIELD(FIELD_U32, control_ask_metrics, conn),
};

static const struct field metrics_fields[] = {
	FIELD(FIELD_U32, control_metrics, conn),
	FIELD(FIELD_U64, control_metrics, attached),
	FIELD(FIELD_U64, control_metrics, detached),
	FIELD(FIELD_U64, control_metrics, ending),
	FIELD(FIELD_U64, control_metrics, processes),
	FIELD(FIELD_U64, control_metrics, started),
	FIELD(FIELD_BYTES, control_metrics, exited),
	FIELD(FIELD_U64, control_metrics, denied),
	FIELD(FIELD_U64, control_metrics, output_bytes),
	FIELD(FIELD_BYTES, control_metrics, start_us),
	FIELD(FIELD_U64, control_metrics, start_us_sum),
	FIELD(FIELD_U64, control_metrics, records),
	FIELD(FIELD_U64, control_metrics, records_lost),
	FIELD(FIELD_BOOL, control_metrics, record_failing),
	FIELD(FIELD_BYTES, control_metrics, programs),
	FIELD(FIELD_BYTES, control_metrics, memory_bytes),
};

static const struct field audit_fields[] = {
	FIELD(FIELD_U8, control_audit, files),
	FIELD(FIELD_STRING, control_audit, redact_names),
	FIELD(FIELD_STRING, control_audit, redact_values),
};

static const struct field cast_fields[] = {
	FIELD(FIELD_STRING, control_cast, process),
};

static const struct field cast_file_fields[] = {
	FIELD(FIELD_U32, control_cast_file, error),
};

static const struct field recording_fields[] = {
	FIELD(FIELD_BOOL, control_recording, works),
};

static const struct field file_fields[] = {
	FIELD(FIELD_STRING, control_file, operation),
	FIELD(FIELD_STRING, control_file, path),
	FIELD(FIELD_STRING, control_file, destination),
	FIELD(FIELD_BOOL, control_file, cut),
	FIELD(FIELD_BOOL, control_file, sandboxed),
};

static const struct field http_fields[] = {
	FIELD(FIELD_STRING, control_http, method),
	FIELD(FIELD_STRING, control_http, url),
	FIELD(FIELD_BOOL, control_http, url_cut),
	FIELD(FIELD_U32, control_http, redacted),
};

static const struct field exited_fields[] = {
	FIELD(FIELD_STRING, control_exited, process),
	FIELD(FIELD_U32, control_exited, code),
	FIELD(FIELD_U32, control_exited, signal),
	FIELD(FIELD_BOOL, control_exited, terminated),
	FIELD(FIELD_BOOL, control_exited, denied),
	FIELD(FIELD_U8, control_exited, cause),
	FIELD(FIELD_U64, control_exited, output_bytes),
	FIELD(FIELD_U64, control_exited, duration_ms),
	FIELD(FIELD_U64, control_exited, user_ms),
	FIELD(FIELD_U64, control_exited, system_ms),
	FIELD(FIELD_U64, control_exited, max_rss_bytes),
	FIELD(FIELD_U64, control_exited, memory_kills),
	FIELD(FIELD_U64, control_exited, forks_denied),
};

static const struct field key_fields[] = {
	FIELD(FIELD_U32, control_key, key),
};

static const struct field sign_fields[] = {
	FIELD(FIELD_U32, control_sign, serial),
	FIELD(FIELD_U32, control_sign, key),
	FIELD(FIELD_U32, control_sign, scheme),
	FIELD(FIELD_U32, control_sign, len),
	FIELD(FIELD_BYTES, control_sign, tbs),
};

static const struct field signed_fields[] = {
	FIELD(FIELD_U32, control_signed, serial),
	FIELD(FIELD_U32, control_signed, len),
	FIELD(FIELD_BYTES, control_signed, signature),
};

static const struct field trust_fields[] = {
	FIELD(FIELD_U32, control_trust, listener),
	FIELD(FIELD_BOOL, control_trust, crl),
};

static const struct field serve_fields[] = {
	FIELD(FIELD_BYTES, control_serve, secret),
};

static const struct field verify_fields[] = {
	FIELD(FIELD_U32, control_verify, serial),
	FIELD(FIELD_U32, control_verify, listener),
	FIELD(FIELD_U32, control_verify, len),
	FIELD(FIELD_BYTES, control_verify, chain),
};

static const struct field verified_fields[] = {
	FIELD(FIELD_U32, control_verified, serial),
	FIELD(FIELD_U32, control_verified, error),
	FIELD(FIELD_U32, control_verified, voucher.listener),
	FIELD(FIELD_U64, control_verified, voucher.made_ms),
	FIELD(FIELD_BYTES, control_verified, voucher.digest),
	FIELD(FIELD_STRING, control_verified, voucher.subject),
	FIELD(FIELD_BYTES, control_verified, voucher.seal),
};

static const struct field start_fields[] = {
	FIELD(FIELD_STRING, control_start, session_id),
	FIELD(FIELD_STRING, control_start, name),
	FIELD(FIELD_STRING, control_start, home),
	FIELD(FIELD_U32, control_start, uid),
	FIELD(FIELD_U32, control_start, gid),
	FIELD(FIELD_U32, control_start, umask),
	FIELD(FIELD_U32, control_start, session_processes),
	FIELD(FIELD_U32, control_start, session_cpu_percent),
	FIELD(FIELD_U64, control_start, session_memory_bytes),
	FIELD(FIELD_U32, control_start, max_processes),
	FIELD(FIELD_U32, control_start, max_open_files),
	FIELD(FIELD_U32, control_start, max_cpu_ms),
	FIELD(FIELD_U64, control_start, max_memory_bytes),
	FIELD(FIELD_U64, control_start, max_file_bytes),
};

static const struct field runner_started_fields[] = {
	FIELD(FIELD_U32, control_runner_started, error),
	FIELD(FIELD_U32, control_runner_started, pid),
	FIELD(FIELD_U8, control_runner_started, cgroups),
};

static const struct field door_fields[] = {
	FIELD(FIELD_U32, control_door, uid),
	FIELD(FIELD_U32, control_door, gid),
};

static const struct field starter_error_fields[] = {
	FIELD(FIELD_U32, control_starter_error, error),
	FIELD(FIELD_STRING, control_starter_error, step),
};

static const struct field pid_fields[] = {
	FIELD(FIELD_U32, control_pid, pid),
};

static const struct field runner_status_fields[] = {
	FIELD(FIELD_U32, control_runner_status, pid),
	FIELD(FIELD_U32, control_runner_status, status),
};

static const struct field watch_fields[] = {
	FIELD(FIELD_U32, control_watch, number),
	FIELD(FIELD_STRING, control_watch, peer),
};

static const struct field unwatched_fields[] = {
	FIELD(FIELD_U32, control_unwatched, number),
	FIELD(FIELD_U8, control_unwatched, end),
};

static const struct layout {
	enum control_type type;
	const char *name;
	const struct field *fields;
	size_t count;
} layouts[] = {
#define LAYOUT(type, fields)                                                   \
	{                                                                      \
		type, #type, fields, nitems(fields)                            \
	}
#define EMPTY(type)                                                            \
	{                                                                      \
		type, #type, NULL, 0                                           \
	}
	LAYOUT(MON_EV_CONFIGURE, configure_fields),
	LAYOUT(MON_EV_RUNNER_EXITED, runner_exited_fields),
	LAYOUT(MON_EV_RELOAD, configure_fields),
	EMPTY(MON_EV_DRAIN),
	EMPTY(MON_EV_STOP),
	LAYOUT(MON_EV_LISTENER, listener_fields),
	LAYOUT(MON_REQ_READY, ready_fields),
	LAYOUT(MON_REQ_AUTHENTICATE, authenticate_fields),
	LAYOUT(MON_ANS_AUTHENTICATE, verdict_fields),
	LAYOUT(MON_REQ_OPEN, open_fields),
	LAYOUT(MON_ANS_OPEN, session_fields),
	LAYOUT(MON_REQ_RESUME, resume_fields),
	LAYOUT(MON_ANS_RESUME, session_fields),
	LAYOUT(MON_REQ_CLOSE, close_fields),
	LAYOUT(MON_ANS_CLOSE, closed_fields),
	EMPTY(MON_REQ_DONE),
	LAYOUT(MON_REQ_WATCH, resume_fields),
	LAYOUT(MON_ANS_WATCH, session_fields),
	LAYOUT(MON_REQ_REFUSED, refused_fields),
	LAYOUT(MON_REQ_METRICS, ask_metrics_fields),
	LAYOUT(MON_ANS_METRICS, metrics_fields),
	LAYOUT(RUNNER_ORDER_CONFIGURE, session_config_fields),
	LAYOUT(RUNNER_ORDER_SANDBOX, sandbox_fields),
	LAYOUT(RUNNER_ORDER_ATTACH, attach_fields),
	EMPTY(RUNNER_ORDER_DETACH),
	EMPTY(RUNNER_ORDER_TERMINATE),
	LAYOUT(RUNNER_ORDER_WATCH, watch_fields),
	LAYOUT(RUNNER_REPORT_DETACHED, detached_fields),
	LAYOUT(RUNNER_REPORT_UNWATCHED, unwatched_fields),
	LAYOUT(RUNNER_REPORT_STARTED, started_fields),
	LAYOUT(RUNNER_REPORT_EXITED, exited_fields),
	EMPTY(RUNNER_REPORT_MASKS),
	LAYOUT(TEMPLATE_ORDER_START, template_start_fields),
	LAYOUT(TEMPLATE_REPORT_STARTED, template_started_fields),
	LAYOUT(RUNNER_ORDER_AUDIT, audit_fields),
	LAYOUT(RUNNER_ORDER_RECORDING, recording_fields),
	LAYOUT(RUNNER_REPORT_FILE, file_fields),
	LAYOUT(RUNNER_REPORT_HTTP, http_fields),
	EMPTY(RUNNER_REPORT_END),
	LAYOUT(RUNNER_REPORT_CAST, cast_fields),
	LAYOUT(RUNNER_ORDER_CAST, cast_file_fields),
	LAYOUT(KEYS_CONFIGURE, key_fields),
	LAYOUT(KEYS_SERVE, serve_fields),
	LAYOUT(KEYS_SIGN, sign_fields),
	LAYOUT(KEYS_SIGNED, signed_fields),
	LAYOUT(KEYS_TRUST, trust_fields),
	LAYOUT(KEYS_VERIFY, verify_fields),
	LAYOUT(KEYS_VERIFIED, verified_fields),
	EMPTY(STARTER_BEGIN),
	LAYOUT(STARTER_READY, starter_error_fields),
	LAYOUT(STARTER_START, start_fields),
	LAYOUT(STARTER_STARTED, runner_started_fields),
	LAYOUT(STARTER_DOOR, door_fields),
	LAYOUT(STARTER_OPENED, starter_error_fields),
	LAYOUT(STARTER_SWEEP, start_fields),
	LAYOUT(STARTER_KILL, pid_fields),
	LAYOUT(STARTER_EXITED, runner_status_fields),
	LAYOUT(STARTER_END, pid_fields),
};

static const struct layout *
layout_find(enum control_type type)
{
	for (size_t i = 0; i < nitems(layouts); i++)
		if (layouts[i].type == type)
			return &layouts[i];
	return NULL;
}

static void
put_field(struct buf *b, const struct field *f, const uint8_t *at)
{
	uint32_t u32;
	uint64_t u64;

	switch (f->kind) {
	case FIELD_BOOL:
		buf_put_u8(b, *(const bool *)at);
		break;
	case FIELD_U8:
		buf_put_u8(b, *at);
		break;
	case FIELD_U32:
		memcpy(&u32, at, sizeof(u32));
		buf_put_u32(b, u32);
		break;
	case FIELD_U64:
		memcpy(&u64, at, sizeof(u64));
		buf_put_u64(b, u64);
		break;
	case FIELD_BYTES:
		buf_put(b, at, f->size);
		break;
	case FIELD_STRING:
		buf_put_string(b, (const char *)at,
		    strnlen((const char *)at, f->size - 1));
		break;
	}
}

void
control_put(struct buf *b, enum control_type type, const void *payload)
{
	const struct layout *l = layout_find(type);

	assert(l != NULL);
	buf_put_u32(b, type);
	for (size_t i = 0; i < l->count; i++)
		put_field(b, &l->fields[i],
		    (const uint8_t *)payload + l->fields[i].offset);
}

static void
get_field(struct buf_reader *r, const struct field *f, uint8_t *at)
{
	uint32_t u32;
	uint64_t u64;
	uint8_t u8;

	switch (f->kind) {
	case FIELD_BOOL:
		u8 = buf_get_u8(r);
		if (u8 > 1)
			r->failed = true;
		*(bool *)at = u8 == 1;
		break;
	case FIELD_U8:
		*at = buf_get_u8(r);
		break;
	case FIELD_U32:
		u32 = buf_get_u32(r);
		memcpy(at, &u32, sizeof(u32));
		break;
	case FIELD_U64:
		u64 = buf_get_u64(r);
		memcpy(at, &u64, sizeof(u64));
		break;
	case FIELD_BYTES:
		buf_get(r, at, f->size);
		break;
	case FIELD_STRING:
		buf_get_string(r, (char *)at, f->size);
		break;
	}
}

enum control_type
control_peek(const void *message, size_t len)
{
	struct buf_reader r;
	enum control_type type;

	buf_reader_init(&r, message, len);
	type = buf_get_u32(&r);
	return r.failed || layout_find(type) == NULL ? 0 : type;
}

int
control_get(
    const void *message, size_t len, enum control_type type, void *payload)
{
	const struct layout *l = layout_find(type);
	struct buf_reader r;

	if (l == NULL)
		return -EBADMSG;
	buf_reader_init(&r, message, len);
	if (buf_get_u32(&r) != type)
		return -EBADMSG;
	for (size_t i = 0; i < l->count; i++)
		get_field(&r, &l->fields[i],
		    (uint8_t *)payload + l->fields[i].offset);
	return buf_end(&r);
}

const char *
control_name(enum control_type type)
{
	const struct layout *l = layout_find(type);

	return l ? l->name : "unknown message";
}

const char *
control_verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_GRANTED] = "granted",
		[VERDICT_MISSING_TOKEN] = "missing websocket bearer token",
		[VERDICT_INVALID_HEADER] = "invalid authorization header",
		[VERDICT_INVALID_TOKEN] = "invalid websocket bearer token",
		[VERDICT_INVALID_JWT] = "invalid websocket jwt",
		[VERDICT_EXPIRED_JWT] = "expired websocket jwt",
		[VERDICT_EARLY_JWT] = "websocket jwt is not valid yet",
		[VERDICT_ISSUER] = "websocket jwt issuer mismatch",
		[VERDICT_AUDIENCE] = "websocket jwt audience mismatch",
		[VERDICT_BUSY] =
		    "the server has no room for another connection",
		[VERDICT_STRANGER] = "the client is not known here",
	};

	return (size_t)verdict < nitems(names) ? names[verdict] : "";
}

_Static_assert(END_CAUSES <= METRICS_CAUSES_MAX, "metrics of every cause");

const char *
control_cause_name(unsigned cause)
{
	static const char *const names[END_CAUSES] = {
		[END_SIGNAL] = "signal",
		[END_CLIENT] = "client",
		[END_SESSION] = "session-end",
		[END_TIMEOUT] = "timeout",
		[END_COMMAND_DEADLINE] = "command-deadline",
		[END_MEMORY] = "memory",
		[END_CPU_TIME] = "max-cpu-time",
		[END_FILE_SIZE] = "max-file-size",
		[END_FILTER] = "sandbox",
		[END_RECORDING] = "record-tty",
	};

	return cause < END_CAUSES ? names[cause] : NULL;
}
