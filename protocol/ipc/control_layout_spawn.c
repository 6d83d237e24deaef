/* SPDX-License-Identifier: ISC */
/*
 * How the messages of the spawn channel are laid out, between root and the
 * broker.
 */
#include "control_layout.h"

static const struct field start_fields[] = {
	FIELD(FIELD_STRING, control_start, group),
	FIELD(FIELD_STRING, control_start, session_id),
	FIELD(FIELD_STRING, control_start, name),
	FIELD(FIELD_U32, control_start, uid),
	FIELD(FIELD_U32, control_start, gid),
	FIELD(FIELD_U32, control_start, umask),
	FIELD(FIELD_U32, control_start, session_processes),
	FIELD(FIELD_U32, control_start, session_cpu_percent),
	FIELD(FIELD_BOOL, control_start, limits_command_cpu),
	FIELD(FIELD_U64, control_start, session_memory_bytes),
	FIELD(FIELD_U32, control_start, max_processes),
	FIELD(FIELD_U32, control_start, max_open_files),
	FIELD(FIELD_U32, control_start, max_cpu_ms),
	FIELD(FIELD_U64, control_start, max_memory_bytes),
	FIELD(FIELD_U64, control_start, max_file_bytes),
};

static const struct field started_fields[] = {
	FIELD(FIELD_U32, control_runner_started, error),
	FIELD(FIELD_STRING, control_runner_started, step),
	FIELD(FIELD_U32, control_runner_started, pid),
	FIELD(FIELD_U8, control_runner_started, cgroups),
};

static const struct field userns_fields[] = {
	FIELD(FIELD_U32, control_userns, uid),
	FIELD(FIELD_U32, control_userns, gid),
};

static const struct field error_fields[] = {
	FIELD(FIELD_U32, control_spawn_error, error),
	FIELD(FIELD_STRING, control_spawn_error, step),
};

static const struct field ready_fields[] = {
	FIELD(FIELD_U32, control_spawn_ready, error),
	FIELD(FIELD_STRING, control_spawn_ready, step),
	FIELD(FIELD_U32, control_spawn_ready, controllers),
	FIELD(FIELD_U64, control_spawn_ready, groups_made),
	FIELD(FIELD_BOOL, control_spawn_ready, served),
};

static const struct field next_fields[] = {
	FIELD(FIELD_U32, control_next, index),
};

static const struct field kept_fields[] = {
	FIELD(FIELD_U32, control_kept, pid),
	FIELD(FIELD_U32, control_kept, uid),
	FIELD(FIELD_STRING, control_kept, group),
	FIELD(FIELD_STRING, control_kept, session_id),
	FIELD(FIELD_STRING, control_kept, name),
};

static const struct field store_fields[] = {
	FIELD(FIELD_STRING, control_store, name),
};

static const struct field stored_fields[] = {
	FIELD(FIELD_BOOL, control_stored, there),
};

static const struct field serving_fields[] = {
	FIELD(FIELD_BOOL, control_serving, replaceable),
};

static const struct field stop_fields[] = {
	FIELD(FIELD_U8, control_stop, code),
};

static const struct field pid_fields[] = {
	FIELD(FIELD_U32, control_pid, pid),
};

static const struct field status_fields[] = {
	FIELD(FIELD_U32, control_runner_status, pid),
	FIELD(FIELD_U32, control_runner_status, status),
};

static const struct control_layout rows[] = {
	FIRST_EMPTY(SPAWN_BEGIN),
	FIRST_LAYOUT(SPAWN_READY, ready_fields),
	LAYOUT(SPAWN_START, start_fields),
	LAYOUT(SPAWN_STARTED, started_fields),
	LAYOUT(SPAWN_USERNS, userns_fields),
	LAYOUT(SPAWN_OPENED, error_fields),
	LAYOUT(SPAWN_SWEEP, start_fields),
	LAYOUT(SPAWN_KILL, pid_fields),
	LAYOUT(SPAWN_END, pid_fields),
	LAYOUT(SPAWN_NEXT, next_fields),
	LAYOUT(SPAWN_KEPT, kept_fields),
	LAYOUT(SPAWN_STORE, store_fields),
	LAYOUT(SPAWN_TAKE, store_fields),
	LAYOUT(SPAWN_STORED, stored_fields),
	LAYOUT(SPAWN_SERVING, serving_fields),
	LAYOUT(SPAWN_STOP, stop_fields),
	EMPTY(SPAWN_ALIVE),
	LAYOUT(SPAWN_EXITED, status_fields),
	EMPTY(SPAWN_PING),
};

const struct control_layouts control_layouts_spawn = { rows, nitems(rows),
	SPAWN_VERSION, SPAWN_VERSION };
