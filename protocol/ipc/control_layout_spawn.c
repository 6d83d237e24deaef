/* SPDX-License-Identifier: ISC */
/*
 * How the messages of the spawn channel are laid out, between root and the
 * broker.
 */
#include "control_layout.h"

static const struct field begin_fields[] = {
	FIELD(FIELD_BOOL, control_begin, check),
};

static const struct field spawn_ready_fields[] = {
	FIELD(FIELD_U32, control_spawn_ready, error),
	FIELD(FIELD_STRING, control_spawn_ready, step),
	FIELD(FIELD_U32, control_spawn_ready, controllers),
	FIELD(FIELD_U64, control_spawn_ready, groups_made),
	FIELD(FIELD_BOOL, control_spawn_ready, is_root),
	FIELD(FIELD_BOOL, control_spawn_ready, served),
	FIELD(FIELD_BOOL, control_spawn_ready, reload),
};

static const struct field file_fields[] = {
	FIELD(FIELD_BOOL, control_trusted, past),
	FIELD(FIELD_STRING, control_trusted, path),
};

static const struct field found_fields[] = {
	FIELD(FIELD_U32, control_found, error),
	FIELD(FIELD_STRING, control_found, why),
	FIELD(FIELD_U32, control_found, uid),
	FIELD(FIELD_U32, control_found, mode),
};

static const struct field place_fields[] = {
	FIELD(FIELD_U32, control_place, number),
	FIELD(FIELD_U8, control_place, kind),
	FIELD(FIELD_STRING, control_place, name),
	FIELD(FIELD_BYTES, control_place, address),
	FIELD(FIELD_STRING, control_place, path),
	FIELD(FIELD_U32, control_place, mode),
	FIELD(FIELD_U32, control_place, gid),
};

static const struct field user_fields[] = {
	FIELD(FIELD_U32, control_user, number),
	FIELD(FIELD_STRING, control_user, name),
	FIELD(FIELD_U32, control_user, uid),
	FIELD(FIELD_U32, control_user, gid),
	FIELD(FIELD_U32, control_user, umask),
	FIELD(FIELD_U32, control_user, session_processes),
	FIELD(FIELD_U32, control_user, session_cpu_percent),
	FIELD(FIELD_BOOL, control_user, limits_command_cpu),
	FIELD(FIELD_U64, control_user, session_memory_bytes),
	FIELD(FIELD_U32, control_user, max_processes),
	FIELD(FIELD_U32, control_user, max_open_files),
	FIELD(FIELD_U32, control_user, max_cpu_ms),
	FIELD(FIELD_U64, control_user, max_memory_bytes),
	FIELD(FIELD_U64, control_user, max_file_bytes),
};

static const struct field seal_fields[] = {
	FIELD(FIELD_U32, control_seal, uid),
	FIELD(FIELD_U32, control_seal, gid),
	FIELD(FIELD_BOOL, control_seal, debug),
};

static const struct field spawn_error_fields[] = {
	FIELD(FIELD_U32, control_spawn_error, error),
	FIELD(FIELD_STRING, control_spawn_error, step),
};

static const struct field start_fields[] = {
	FIELD(FIELD_U32, control_start, user),
	FIELD(FIELD_STRING, control_start, group),
	FIELD(FIELD_STRING, control_start, session_id),
};

static const struct field runner_started_fields[] = {
	FIELD(FIELD_U32, control_runner_started, error),
	FIELD(FIELD_STRING, control_runner_started, step),
	FIELD(FIELD_U32, control_runner_started, pid),
	FIELD(FIELD_U8, control_runner_started, cgroups),
};

static const struct field number_fields[] = {
	FIELD(FIELD_U32, control_number, number),
};

static const struct field program_fields[] = {
	FIELD(FIELD_U8, control_program, kind),
};

static const struct field record_fields[] = {
	FIELD(FIELD_U32, control_record, number),
	FIELD(FIELD_STRING, control_record, name),
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

static const struct field runner_status_fields[] = {
	FIELD(FIELD_U32, control_runner_status, pid),
	FIELD(FIELD_U32, control_runner_status, status),
};

static const struct control_layout rows[] = {
	FIRST_LAYOUT(SPAWN_BEGIN, begin_fields),
	FIRST_LAYOUT(SPAWN_READY, spawn_ready_fields),
	LAYOUT(SPAWN_FILE, file_fields),
	LAYOUT(SPAWN_FOUND, found_fields),
	LAYOUT(SPAWN_PLACE, place_fields),
	LAYOUT(SPAWN_USER, user_fields),
	LAYOUT(SPAWN_SEAL, seal_fields),
	LAYOUT(SPAWN_SEALED, spawn_error_fields),
	LAYOUT(SPAWN_START, start_fields),
	LAYOUT(SPAWN_STARTED, runner_started_fields),
	LAYOUT(SPAWN_USERNS, number_fields),
	LAYOUT(SPAWN_OPENED, spawn_error_fields),
	LAYOUT(SPAWN_CLEANUP, number_fields),
	LAYOUT(SPAWN_PROGRAM, program_fields),
	LAYOUT(SPAWN_OPEN, number_fields),
	LAYOUT(SPAWN_CLOSE, number_fields),
	LAYOUT(SPAWN_RECORD, record_fields),
	LAYOUT(SPAWN_KILL, pid_fields),
	LAYOUT(SPAWN_END, pid_fields),
	LAYOUT(SPAWN_NEXT, next_fields),
	LAYOUT(SPAWN_KEPT, kept_fields),
	LAYOUT(SPAWN_STORE, store_fields),
	LAYOUT(SPAWN_TAKE, store_fields),
	LAYOUT(SPAWN_STORED, stored_fields),
	LAYOUT(SPAWN_SERVING, serving_fields),
	EMPTY(SPAWN_RELOAD),
	LAYOUT(SPAWN_STOP, stop_fields),
	EMPTY(SPAWN_ALIVE),
	LAYOUT(SPAWN_EXITED, runner_status_fields),
	EMPTY(SPAWN_PING),
	EMPTY(SPAWN_LEAVE),
};

const struct control_layouts control_layouts_spawn = { rows, nitems(rows),
	SPAWN_VERSION, SPAWN_VERSION };
