/* SPDX-License-Identifier: ISC */
/*
 * Encodes and decodes the dialect of the reference runner (doc/protocol.md
 * section 18): frames with {"version":1,"type":TYPE,"payload":{...}}.
 */
#ifndef RUNNER_V1_H
#define RUNNER_V1_H

#include "args.h"

#define RUNNER_V1_FRAME_MAX    (8u << 20)
#define RUNNER_V1_TIMEOUT_CODE 192 /* exit_code of a command that timed out */

enum runner_v1_type {
	RUNNER_V1_SPAWN_REQUEST,
	RUNNER_V1_STDIN,
	RUNNER_V1_TERMINATE,
};

struct runner_v1_spawn {
	const struct json_value *command; /* strings */
	struct slice cwd;		  /* a plain absolute path */
	const struct json_value *env;	  /* string map */
	struct slice policy;	 /* for sandbox_preset_decode(); never empty */
	struct slice policy_cwd; /* plain and absolute; "": use cwd */
	bool has_timeout;
	uint64_t timeout_ms;
	bool tty;
	bool stdin_open;
};

/* A message from the parent. */
struct runner_v1_message {
	struct json_doc doc;
	enum runner_v1_type type;
	struct runner_v1_spawn spawn;
	struct slice stdin_bytes; /* decoded */
};

/* Parses a message. Returns 0, or -EBADMSG with the reason in
 * error[ARGS_ERROR_MAX]. In both cases the caller ends with
 * runner_v1_clear(). */
int runner_v1_parse(
    struct runner_v1_message *m, const char *text, size_t len, char *error);
void runner_v1_clear(struct runner_v1_message *m);

/* Write messages to the parent, each a complete JSON value. */
void runner_v1_write_ready(struct json_writer *w, int64_t process_id);
void runner_v1_write_output(
    struct json_writer *w, const char *stream, const void *data, size_t len);
void runner_v1_write_exit(struct json_writer *w, int exit_code, bool timed_out);
void runner_v1_write_error(
    struct json_writer *w, const char *message, const char *code);

#endif
