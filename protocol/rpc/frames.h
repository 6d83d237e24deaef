/* SPDX-License-Identifier: ISC */
/*
 * Encodes and decodes the dialects of the reference runner (doc/protocol.md
 * section 18): frames with {"version":N,"type":TYPE,"payload":{...}}, where N
 * is 1 or 6. The same code serves every operating system.
 */
#pragma once

#include "args.h"

#define FRAMES_OLD 1 /* a preset or a legacy policy */
#define FRAMES_NEW 6 /* a permission profile; close_stdin and resize */

#define FRAMES_MESSAGE_MAX  (8u << 20)
#define FRAMES_HEADER_BYTES 4	/* a length, little-endian */
#define FRAMES_TIMEOUT_CODE 192 /* exit_code of a command that timed out */

/* The most capability SIDs of one command. */
#define FRAMES_SIDS_MAX 64

enum frames_type {
	FRAMES_SPAWN_REQUEST,
	FRAMES_STDIN,
	FRAMES_TERMINATE,
	FRAMES_CLOSE_STDIN, /* version 6 */
	FRAMES_RESIZE,	    /* version 6 */
};

struct frames_spawn {
	const struct json_value *command; /* strings */
	struct slice cwd;		  /* a plain absolute path */
	const struct json_value *env;	  /* string map */
	/* Version 1: */
	struct slice policy;	 /* for sandbox_preset_decode(); never empty */
	struct slice policy_cwd; /* plain and absolute; "": use cwd */
	/* Version 6: */
	const struct json_value *profile; /* an object; NULL in version 1 */
	const struct json_value *roots;	  /* strings: plain absolute paths */
	struct slice desktop;		  /* its private desktop; not empty */
	/* strings, at most FRAMES_SIDS_MAX; not empty in version 6 */
	const struct json_value *cap_sids;
	bool has_timeout;
	uint64_t timeout_ms;
	bool tty;
	bool stdin_open;
};

/* A message from the parent. */
struct frames_message {
	struct json_doc doc;
	unsigned version;
	enum frames_type type;
	struct frames_spawn spawn;
	struct slice stdin_bytes; /* decoded */
	uint16_t rows, cols;	  /* FRAMES_RESIZE */
};

/* Tells whether a path without NUL is absolute on this machine. */
typedef bool frames_path_fn(struct slice path);

/*
 * Parses a message. Returns 0, or -EBADMSG with the reason in
 * error[ARGS_ERROR_MAX]. After an error m->version is 0 if the version could
 * not be read, or is another one than 1 and 6. The caller calls frames_clear()
 * in both cases.
 */
int frames_parse(struct frames_message *m, frames_path_fn *is_absolute,
    const char *text, size_t len, char *error);
void frames_clear(struct frames_message *m);

/* Why a command was not run, or is ended. */
struct frames_error {
	const char *code;	/* of execd-runner(8) */
	uint32_t windows_error; /* 0: it was no error of Windows */
	bool spawning;		/* it happened after spawn_request was read */
	const char *message;
};

/* Write messages of a version to the parent, each a complete JSON value. */
void frames_write_ready(
    struct json_writer *w, unsigned version, int64_t process_id);
void frames_write_output(struct json_writer *w, unsigned version,
    const char *stream, const void *data, size_t len);
/* An exit code of Windows has 32 bits without a sign. */
void frames_write_exit(
    struct json_writer *w, unsigned version, int64_t exit_code, bool timed_out);
void frames_write_error(
    struct json_writer *w, unsigned version, const struct frames_error *e);

/* Writes the length of a frame into the header with which it begins. */
void frames_set_length(struct buf *frame);
