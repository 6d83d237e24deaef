/* SPDX-License-Identifier: ISC */
/*
 * The layout of the messages of runners.
 */
#include "control_layout.h"

static const struct field session_config_fields[] = {
	FIELDS(control_session_config, session_id, provider_id, shell, home,
	    path_map, pid_namespace, netproxy, userns, redirects, cgroups,
	    command_deadline_ms, command_cpu_s, output_rate, record_tty,
	    record_input, record_required),
	FIELDS(control_session_config, record_max_bytes, detached_ttl_ms,
	    closed_ttl_ms, kill_grace_ms, retention_bytes, max_message_bytes,
	    ping_interval_ms, pong_deadline_ms),
};

static const struct field sandbox_fields[] = {
	FIELDS(sandbox_limits, max_profile, unsandboxed, external, network,
	    clamp, accept_launch, workspace_roots, writable_roots, deny_read,
	    hide, protected_names, nested_git, nested_git_depth, environment,
	    tmp, tmpdir),
	FIELDS(sandbox_limits, unix_sockets, allow_32bit, allow_setid,
	    allow_nested_userns, landlock_min_abi, landlock_only,
	    require_groups, shm_bytes, open_files, file_bytes, pids,
	    memory_bytes, cpu_percent, cpu_weight, io_weight, own),
	FIELDS(sandbox_limits, of_identity, of_all, network_host, guards_ports,
	    open_port, own_ports, network_connections, network_bytes,
	    network_allow, network_deny, origins.identity, origins.unsandboxed,
	    origins.external, origins.network, origins.write, origins.roots),
};

static const struct field attach_fields[] = {
	FIELDS(control_attach, generation, peer),
};

static const struct field token_fields[] = {
	FIELDS(control_token, there, key, issuer, until_s, since_s, subject),
};

static const struct field probe_fields[] = {
	FIELDS(control_runner_probe, number),
};

static const struct field started_fields[] = {
	FIELDS(control_started, process, pid, sandboxed, tty, cwd, cwd_cut,
	    command, command_cut),
	FIELDS(control_started, asked.there, asked.type, asked.files,
	    asked.network, enforced.there, enforced.files, enforced.network,
	    landlock_abi, landlock_only, redacted, start_us),
};

static const struct control_layout rows[] = {
	FIRST_LAYOUT_OF(RUNNER_COMMAND_CONFIGURE, session_config_fields),
	LAYOUT_OF(RUNNER_COMMAND_SANDBOX, sandbox_fields),
	LAYOUT_OF(RUNNER_COMMAND_ATTACH, attach_fields),
	LAYOUT_OF(RUNNER_COMMAND_ATTACH_PROXIED, attach_fields),
	LAYOUT_OF(RUNNER_COMMAND_PROBE, probe_fields),
	EMPTY(RUNNER_COMMAND_DETACH),
	EMPTY(RUNNER_COMMAND_TERMINATE),
	LAYOUT(RUNNER_COMMAND_WATCH, control_watch, number, peer),
	LAYOUT_OF(RUNNER_EVENT_PROBED, probe_fields),
	LAYOUT(RUNNER_EVENT_DETACHED, control_detached, generation, end, empty),
	LAYOUT(RUNNER_EVENT_UNWATCHED, control_unwatched, number, end),
	LAYOUT_OF(RUNNER_EVENT_STARTED, started_fields),
	LAYOUT(RUNNER_EVENT_EXITED, control_exited, process, code, signal,
	    terminated, denied, cause, output_bytes, duration_ms, user_ms,
	    system_ms, max_rss_bytes, memory_kills, forks_denied),
	FIRST_EMPTY(RUNNER_COMMAND_IDENTIFY),
	LAYOUT_OF(RUNNER_COMMAND_TOKEN, token_fields),
	LAYOUT_OF(RUNNER_EVENT_TOKEN, token_fields),
	FIRST_LAYOUT(RUNNER_EVENT_IDENTITY, control_identity, peer, generation,
	    watches, recordings, age_ms, empty, audited, terminating),
	LAYOUT(RUNNER_EVENT_RUNNING, control_running, process),
	LAYOUT(RUNNER_COMMAND_AUDIT, control_audit, files, redact_names,
	    redact_values),
	LAYOUT(RUNNER_COMMAND_AUDIT_STATE, control_audit_state, works, process),
	LAYOUT(RUNNER_EVENT_FILE, control_file, operation, path, destination,
	    cut, sandboxed),
	LAYOUT(RUNNER_EVENT_HTTP, control_http, method, method_cut, url,
	    url_cut, redacted),
	LAYOUT(RUNNER_EVENT_NETWORK, control_network, process, host, rule, port,
	    protocol, source, reason, allowed, counted, unrecorded),
	LAYOUT(RUNNER_EVENT_LIMITED, control_limited, process, limit),
	EMPTY(RUNNER_EVENT_END),
	LAYOUT(RUNNER_EVENT_REDIRECTS, control_redirects, possible),
	LAYOUT(RUNNER_EVENT_RECORDING_FILE, control_recording_wanted, process),
	LAYOUT(RUNNER_COMMAND_RECORDING_FILE, control_recording_file, error),
	LAYOUT(
	    RUNNER_EVENT_KEEP, control_keep_wanted, number, keep, running, ms),
	LAYOUT(RUNNER_COMMAND_KEEP, control_keep, number, ms, max_ms, reason),
	LAYOUT(RUNNER_EVENT_KEPT, control_keep_state, running, ms, max_ms,
	    since_ms, detached_ms),
	LAYOUT(RUNNER_EVENT_LIST, control_list_wanted, number, after),
	LAYOUT(RUNNER_COMMAND_LIST, control_list, number, count, more,
	    incomplete, sessions),
	EMPTY(RUNNER_COMMAND_COMMANDS),
	LAYOUT(RUNNER_EVENT_COMMANDS, control_commands, count, more, commands),
	LAYOUT(CHANNEL_CLIENT, control_client, event, received, sent,
	    close_code, reason),
};

const struct control_layouts control_layouts_runner = { rows, nitems(rows),
	RUNNER_VERSION, RUNNER_OLDEST };
