/* SPDX-License-Identifier: ISC */
/*
 * The layout of the messages of runners.
 */
#include "control_layout.h"

static const struct field session_config_fields[] = {
	FIELD(FIELD_STRING, control_session_config, session_id),
	FIELD(FIELD_STRING, control_session_config, provider_id),
	FIELD(FIELD_STRING, control_session_config, shell),
	FIELD(FIELD_STRING, control_session_config, home),
	FIELD(FIELD_STRING, control_session_config, path_map),
	FIELD(FIELD_BOOL, control_session_config, pid_namespace),
	FIELD(FIELD_BOOL, control_session_config, netproxy),
	FIELD(FIELD_BOOL, control_session_config, userns),
	FIELD(FIELD_BOOL, control_session_config, placeholders),
	FIELD(FIELD_U8, control_session_config, cgroups),
	FIELD(FIELD_U32, control_session_config, command_deadline_ms),
	FIELD(FIELD_U64, control_session_config, output_rate),
	FIELD(FIELD_BOOL, control_session_config, record_tty),
	FIELD(FIELD_BOOL, control_session_config, record_input),
	FIELD(FIELD_BOOL, control_session_config, record_required),
	FIELD(FIELD_U64, control_session_config, record_max_bytes),
	FIELD(FIELD_U32, control_session_config, detached_ttl_ms),
	FIELD(FIELD_U32, control_session_config, closed_ttl_ms),
	FIELD(FIELD_U32, control_session_config, kill_grace_ms),
	FIELD(FIELD_U64, control_session_config, retention_bytes),
	FIELD(FIELD_U64, control_session_config, max_message_bytes),
	FIELD(FIELD_U32, control_session_config, ping_interval_ms),
	FIELD(FIELD_U32, control_session_config, pong_deadline_ms),
};

static const struct field client_fields[] = {
	FIELD(FIELD_U8, control_client, event),
	FIELD(FIELD_U64, control_client, received),
	FIELD(FIELD_U64, control_client, sent),
	FIELD(FIELD_U32, control_client, close_code),
	FIELD(FIELD_STRING, control_client, reason),
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
	FIELD(FIELD_BOOL, sandbox_limits, landlock_only),
	FIELD(FIELD_BOOL, sandbox_limits, require_groups),
	FIELD(FIELD_U64, sandbox_limits, shm_bytes),
	FIELD(FIELD_U64, sandbox_limits, open_files),
	FIELD(FIELD_U64, sandbox_limits, file_bytes),
	FIELD(FIELD_U64, sandbox_limits, pids),
	FIELD(FIELD_U64, sandbox_limits, memory_bytes),
	FIELD(FIELD_U32, sandbox_limits, cpu_percent),
	FIELD(FIELD_U32, sandbox_limits, cpu_weight),
	FIELD(FIELD_U32, sandbox_limits, io_weight),
	FIELD(FIELD_U8, sandbox_limits, own),
	FIELD(FIELD_BYTES, sandbox_limits, of_identity),
	FIELD(FIELD_BYTES, sandbox_limits, of_all),
	FIELD(FIELD_BOOL, sandbox_limits, network_host),
	FIELD(FIELD_BOOL, sandbox_limits, guards_ports),
	FIELD(FIELD_BOOL, sandbox_limits, open_port),
	FIELD(FIELD_BYTES, sandbox_limits, own_ports),
	FIELD(FIELD_U32, sandbox_limits, network_connections),
	FIELD(FIELD_U64, sandbox_limits, network_bytes),
	FIELD(FIELD_STRING, sandbox_limits, network_allow),
	FIELD(FIELD_STRING, sandbox_limits, network_deny),
	FIELD(FIELD_STRING, sandbox_limits, origins.identity),
	FIELD(FIELD_STRING, sandbox_limits, origins.unsandboxed),
	FIELD(FIELD_STRING, sandbox_limits, origins.external),
	FIELD(FIELD_STRING, sandbox_limits, origins.network),
	FIELD(FIELD_STRING, sandbox_limits, origins.write),
	FIELD(FIELD_STRING, sandbox_limits, origins.roots),
};

static const struct field identity_fields[] = {
	FIELD(FIELD_STRING, control_identity, peer),
	FIELD(FIELD_U32, control_identity, generation),
	FIELD(FIELD_U32, control_identity, watches),
	FIELD(FIELD_U32, control_identity, recordings),
	FIELD(FIELD_U64, control_identity, age_ms),
	FIELD(FIELD_BOOL, control_identity, empty),
	FIELD(FIELD_BOOL, control_identity, audited),
	FIELD(FIELD_BOOL, control_identity, terminating),
};

static const struct field keep_wanted_fields[] = {
	FIELD(FIELD_U32, control_keep_wanted, number),
	FIELD(FIELD_BOOL, control_keep_wanted, keep),
	FIELD(FIELD_BOOL, control_keep_wanted, running),
	FIELD(FIELD_U32, control_keep_wanted, ms),
};

static const struct field keep_fields[] = {
	FIELD(FIELD_U32, control_keep, number),
	FIELD(FIELD_U32, control_keep, ms),
	FIELD(FIELD_U32, control_keep, max_ms),
	FIELD(FIELD_STRING, control_keep, reason),
};

static const struct field keep_state_fields[] = {
	FIELD(FIELD_BOOL, control_keep_state, running),
	FIELD(FIELD_U32, control_keep_state, ms),
	FIELD(FIELD_U32, control_keep_state, max_ms),
	FIELD(FIELD_U64, control_keep_state, since_ms),
	FIELD(FIELD_U64, control_keep_state, detached_ms),
};

static const struct field list_wanted_fields[] = {
	FIELD(FIELD_U32, control_list_wanted, number),
	FIELD(FIELD_U64, control_list_wanted, after),
};

static const struct field list_fields[] = {
	FIELD(FIELD_U32, control_list, number),
	FIELD(FIELD_U32, control_list, count),
	FIELD(FIELD_BOOL, control_list, more),
	FIELD(FIELD_BOOL, control_list, incomplete),
	FIELD(FIELD_BYTES, control_list, sessions),
};

static const struct field running_fields[] = {
	FIELD(FIELD_STRING, control_running, process),
};

static const struct field attach_fields[] = {
	FIELD(FIELD_U32, control_attach, generation),
	FIELD(FIELD_STRING, control_attach, peer),
};

static const struct field token_fields[] = {
	FIELD(FIELD_BOOL, control_token, there),
	FIELD(FIELD_BYTES, control_token, key),
	FIELD(FIELD_BYTES, control_token, issuer),
	FIELD(FIELD_U64, control_token, until_s),
	FIELD(FIELD_U64, control_token, since_s),
	FIELD(FIELD_STRING, control_token, subject),
};

static const struct field probe_fields[] = {
	FIELD(FIELD_U32, control_runner_probe, number),
};

static const struct field detached_fields[] = {
	FIELD(FIELD_U32, control_detached, generation),
	FIELD(FIELD_U8, control_detached, end),
	FIELD(FIELD_BOOL, control_detached, empty),
};

static const struct field started_fields[] = {
	FIELD(FIELD_STRING, control_started, process),
	FIELD(FIELD_U32, control_started, pid),
	FIELD(FIELD_BOOL, control_started, sandboxed),
	FIELD(FIELD_BOOL, control_started, tty),
	FIELD(FIELD_STRING, control_started, cwd),
	FIELD(FIELD_BOOL, control_started, cwd_cut),
	FIELD(FIELD_STRING, control_started, command),
	FIELD(FIELD_BOOL, control_started, command_cut),
	FIELD(FIELD_BOOL, control_started, asked.there),
	FIELD(FIELD_U8, control_started, asked.type),
	FIELD(FIELD_BOOL, control_started, asked.files),
	FIELD(FIELD_U8, control_started, asked.network),
	FIELD(FIELD_BOOL, control_started, enforced.there),
	FIELD(FIELD_BOOL, control_started, enforced.files),
	FIELD(FIELD_U8, control_started, enforced.network),
	FIELD(FIELD_U32, control_started, landlock_abi),
	FIELD(FIELD_BOOL, control_started, landlock_only),
	FIELD(FIELD_U32, control_started, redacted),
	FIELD(FIELD_U32, control_started, start_us),
};

static const struct field audit_fields[] = {
	FIELD(FIELD_U8, control_audit, files),
	FIELD(FIELD_STRING, control_audit, redact_names),
	FIELD(FIELD_STRING, control_audit, redact_values),
};

static const struct field recording_wanted_fields[] = {
	FIELD(FIELD_STRING, control_recording_wanted, process),
};

static const struct field recording_file_fields[] = {
	FIELD(FIELD_U32, control_recording_file, error),
};

static const struct field audit_state_fields[] = {
	FIELD(FIELD_BOOL, control_audit_state, works),
	FIELD(FIELD_STRING, control_audit_state, process),
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
	FIELD(FIELD_BOOL, control_http, method_cut),
	FIELD(FIELD_STRING, control_http, url),
	FIELD(FIELD_BOOL, control_http, url_cut),
	FIELD(FIELD_U32, control_http, redacted),
};

static const struct field network_fields[] = {
	FIELD(FIELD_STRING, control_network, process),
	FIELD(FIELD_STRING, control_network, host),
	FIELD(FIELD_STRING, control_network, rule),
	FIELD(FIELD_U32, control_network, port),
	FIELD(FIELD_U8, control_network, protocol),
	FIELD(FIELD_U8, control_network, source),
	FIELD(FIELD_U8, control_network, reason),
	FIELD(FIELD_BOOL, control_network, allowed),
	FIELD(FIELD_BOOL, control_network, counted),
	FIELD(FIELD_U32, control_network, unrecorded),
};

static const struct field limited_fields[] = {
	FIELD(FIELD_STRING, control_limited, process),
	FIELD(FIELD_STRING, control_limited, limit),
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

static const struct field watch_fields[] = {
	FIELD(FIELD_U32, control_watch, number),
	FIELD(FIELD_STRING, control_watch, peer),
};

static const struct field unwatched_fields[] = {
	FIELD(FIELD_U32, control_unwatched, number),
	FIELD(FIELD_U8, control_unwatched, end),
};

static const struct control_layout rows[] = {
	EMPTY(RUNNER_COMMAND_SEVERAL),
	FIRST_LAYOUT(RUNNER_COMMAND_CONFIGURE, session_config_fields),
	LAYOUT(RUNNER_COMMAND_SANDBOX, sandbox_fields),
	LAYOUT(RUNNER_COMMAND_ATTACH, attach_fields),
	LAYOUT(RUNNER_COMMAND_ATTACH_PROXIED, attach_fields),
	LAYOUT(RUNNER_COMMAND_PROBE, probe_fields),
	EMPTY(RUNNER_COMMAND_DETACH),
	EMPTY(RUNNER_COMMAND_TERMINATE),
	LAYOUT(RUNNER_COMMAND_WATCH, watch_fields),
	LAYOUT(RUNNER_EVENT_PROBED, probe_fields),
	LAYOUT(RUNNER_EVENT_DETACHED, detached_fields),
	LAYOUT(RUNNER_EVENT_UNWATCHED, unwatched_fields),
	LAYOUT(RUNNER_EVENT_STARTED, started_fields),
	LAYOUT(RUNNER_EVENT_EXITED, exited_fields),
	FIRST_EMPTY(RUNNER_COMMAND_IDENTIFY),
	LAYOUT(RUNNER_COMMAND_TOKEN, token_fields),
	LAYOUT(RUNNER_EVENT_TOKEN, token_fields),
	FIRST_LAYOUT(RUNNER_EVENT_IDENTITY, identity_fields),
	LAYOUT(RUNNER_EVENT_RUNNING, running_fields),
	LAYOUT(RUNNER_COMMAND_AUDIT, audit_fields),
	LAYOUT(RUNNER_COMMAND_AUDIT_STATE, audit_state_fields),
	LAYOUT(RUNNER_EVENT_FILE, file_fields),
	LAYOUT(RUNNER_EVENT_HTTP, http_fields),
	LAYOUT(RUNNER_EVENT_NETWORK, network_fields),
	LAYOUT(RUNNER_EVENT_LIMITED, limited_fields),
	EMPTY(RUNNER_EVENT_END),
	LAYOUT(RUNNER_EVENT_RECORDING_FILE, recording_wanted_fields),
	LAYOUT(RUNNER_COMMAND_RECORDING_FILE, recording_file_fields),
	LAYOUT(RUNNER_EVENT_KEEP, keep_wanted_fields),
	LAYOUT(RUNNER_COMMAND_KEEP, keep_fields),
	LAYOUT(RUNNER_EVENT_KEPT, keep_state_fields),
	LAYOUT(RUNNER_EVENT_LIST, list_wanted_fields),
	LAYOUT(RUNNER_COMMAND_LIST, list_fields),
	LAYOUT(CHANNEL_CLIENT, client_fields),
};

const struct control_layouts control_layouts_runner = { rows, nitems(rows),
	RUNNER_VERSION, RUNNER_OLDEST };
