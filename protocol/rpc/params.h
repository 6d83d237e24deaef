/* SPDX-License-Identifier: ISC */
/*
 * Params of every method, decoded: one struct and one params_NAME() each.
 * Pure; used by the runner, and by the front-end before a session exists.
 * Slices and pointers live as long as the message.
 */
#ifndef PARAMS_H
#define PARAMS_H

#include "args.h"
#include "jsonrpc.h"
#include "sandbox_context.h"

/* Names in "client must call initialize before using FAMILY methods". */
enum method_family {
	FAMILY_INITIALIZE, /* allowed without a session */
	FAMILY_EXEC,
	FAMILY_FILESYSTEM,
	FAMILY_HTTP,
	FAMILY_ENVIRONMENT_INFO,
	FAMILY_ENVIRONMENT_STATUS,
	FAMILY_ENVIRONMENT_CONFIG,
	FAMILY_CAPABILITY_DISCOVERY,
	FAMILY_SESSION,
};

/* "exec", "filesystem", ... (doc/protocol.md section 5.3) */
const char *method_family_name(enum method_family family);

struct initialize_params {
	struct slice client_name;
	bool resume;
	struct slice resume_session_id;
	bool watch; /* not with resume */
	struct slice watch_session_id;
};

struct env_policy {
	enum env_inherit {
		ENV_INHERIT_CORE,
		ENV_INHERIT_ALL,
		ENV_INHERIT_NONE
	} inherit;
	bool ignore_default_excludes;
	const struct json_value *exclude;      /* strings */
	const struct json_value *set;	       /* string map */
	const struct json_value *include_only; /* strings */
};

/* The longest startId. */
#define START_ID_MAX_BYTES 256

/* A terminal's size unless process/start says another. */
#define TTY_ROWS     24
#define TTY_COLS     80
#define TTY_SIZE_MAX 65535

struct process_start_params {
	struct slice process_id;
	const struct json_value *argv; /* strings, maybe empty */
	struct path_uri cwd;
	const struct json_value *env; /* string map */
	bool tty;
	uint16_t rows, cols; /* tty */
	bool has_term;	     /* tty */
	struct slice term;
	bool pipe_stdin;
	bool has_arg0;
	struct slice arg0;
	bool has_env_policy;
	struct env_policy env_policy;
	bool has_timeout;
	uint64_t timeout_ms;
	struct slice start_id; /* empty: none */
	bool has_retention;
	struct retention_params {
		uint64_t head_bytes; /* the first output, for good */
		bool has_tail;	     /* else: what the server's limit leaves */
		uint64_t tail_bytes; /* the newest */
	} retention;
	bool has_sandbox;
	struct sandbox_context sandbox;
	bool enforce_managed_network;
	bool has_network_proxy;
	bool has_managed_network;
	bool has_shell_snapshot;
};

struct process_read_params {
	struct slice process_id;
	uint64_t after_seq;
	uint64_t max_bytes; /* UINT64_MAX: no limit given */
	uint64_t wait_ms;
};

struct process_write_params {
	struct slice process_id;
	struct slice chunk; /* decoded bytes */
	struct slice write_id;
};

/* Positions in signals.def; numbers are the runner's to know. */
enum client_signal {
#define SIGNAL(name) CLIENT_SIGNAL_##name,
#include "signals.def"
#undef SIGNAL
};

/* Without a target it is the peer's: "interrupt", to the group. */
struct process_signal_params {
	struct slice process_id;
	bool has_target;
	enum signal_target {
		SIGNAL_TARGET_PROCESS,
		SIGNAL_TARGET_GROUP,
		SIGNAL_TARGET_TREE,
	} target;
	enum client_signal signal;
};

struct process_terminate_params {
	struct slice process_id;
	bool graceful;
	bool has_timeout; /* graceful */
	uint64_t timeout_ms;
};

struct process_id_params {
	struct slice process_id;
};

struct process_resize_params {
	struct slice process_id;
	uint16_t rows, cols;
};

struct process_list_params {
	uint64_t after; /* the `next` of an earlier answer */
};

struct process_wait_params {
	struct slice process_id;
	uint64_t timeout_ms; /* UINT64_MAX: no limit given */
};

/* Permission bits, set-id bits and the sticky bit. */
#define FILE_MODE_MAX 07777
/* The end of the year 9999, in milliseconds since 1970. */
#define FILE_TIME_MAX 253402300799999

/* Params of every fs/ method; each fills what it has. */
struct fs_params {
	struct path_uri path;	     /* sourcePath of fs/copy, fs/move */
	struct path_uri destination; /* of them */
	bool recursive, force;
	bool overwrite;	      /* fs/move */
	uint16_t mode;	      /* fs/chmod: permission bits */
	bool details;	      /* fs/getMetadata, fs/readDirectory */
	uint64_t modified_ms; /* fs/setTimes: since 1970 */
	struct slice target;  /* fs/symlink: no NUL byte, not empty */
	struct slice data;    /* fs/writeFile: base64 text as it came.
			       * fs/writeBlock: decoded bytes */
	struct slice handle_id;
	bool replace; /* fs/open: mode */
	uint64_t offset, len;
	uint64_t watch_id; /* fs/watch, fs/unwatch */
	/* environmentConfig/read: lists of lists of keys */
	struct path_uri cwd;
	const struct json_value *config_paths, *requirements_paths;
	struct fs_walk_options {
		uint64_t max_depth, max_directories, max_entries;
		bool follow_symlinks, prune_hidden;
	} walk;
	bool has_sandbox;
	struct sandbox_context sandbox;
};

/* Paths that one fs/watchMissing may name. */
#define WATCH_PATHS_MAX 1024

struct watch_params {
	uint64_t watch_id;
	struct path_uri *missing; /* in the arena */
	size_t missing_count;
	bool has_present;
	struct path_uri present;
};

struct http_header {
	struct slice name, value;
	struct slice env_var; /* .ptr NULL: none; else appended to value */
};

struct http_request_params {
	struct slice method, url, request_id;
	struct http_header *headers; /* in the arena */
	size_t header_count;
	bool has_body;
	struct slice body;
	bool has_timeout;
	uint64_t timeout_ms;
	bool follow_redirects;
	bool stream;
};

/* Any of them, for callers that decode by table. */
union method_params {
	struct initialize_params initialize;
	struct process_start_params process_start;
	struct process_read_params process_read;
	struct process_write_params process_write;
	struct process_signal_params process_signal;
	struct process_terminate_params process_terminate;
	struct process_id_params process_id; /* that takes no more */
	struct process_resize_params process_resize;
	struct process_wait_params process_wait;
	struct process_list_params process_list;
	struct fs_params fs;
	struct watch_params watch;
	struct http_request_params http_request;
};

/*
 * Each decodes m->params into its member of *p. 0, or -EBADMSG with the
 * -32602 message in error[ARGS_ERROR_MAX].
 */
typedef int params_fn(
    struct rpc_message *m, union method_params *p, char *error);

/* Ends a params_NAME(): args_end() with the error copied out. */
int params_end(const struct args *a, char *error);

#define METHOD(name, wire, family, when)     params_fn params_##name;
#define FILE_METHOD(name, wire, family, use) params_fn params_##name;
#define HTTP_METHOD(name, wire)		     params_fn params_##name;
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD

#endif
