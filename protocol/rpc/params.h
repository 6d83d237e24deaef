/* SPDX-License-Identifier: ISC */
/*
 * Decodes the params of every method: each method has a struct and a function
 * params_NAME(). Used by the runner, and by the front-end before a session
 * exists. Slices and pointers are valid as long as the message.
 */
#pragma once

#include "jsonrpc.h"
#include "network_params.h"
#include "sandbox_context.h"

/* Families of methods, for "client must call initialize before using FAMILY
 * methods". */
enum method_family {
	FAMILY_INITIALIZE, /* permitted without a session */
	FAMILY_EXEC,
	FAMILY_FILESYSTEM,
	FAMILY_HTTP,
	FAMILY_ENVIRONMENT_INFO,
	FAMILY_ENVIRONMENT_STATUS,
	FAMILY_ENVIRONMENT_CONFIG,
	FAMILY_CAPABILITY_DISCOVERY,
	FAMILY_SESSION,
};

/* Returns "exec", "filesystem", ... (doc/protocol.md section 5.3). */
const char *method_family_name(enum method_family family);

/* How long a session is kept without a client. */
struct session_keep_params {
	uint64_t keep_ms;
	bool while_running; /* from the end of its last command on */
};

struct session_list_params {
	uint64_t after; /* `next` of an earlier answer */
};

struct initialize_params {
	struct slice client_name;
	bool resume;
	struct slice resume_session_id;
	bool take_over; /* only with resume */
	bool watch;	/* not together with resume */
	struct slice watch_session_id;
	bool has_keep; /* not together with watch */
	struct session_keep_params keep;
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

/* The size of a terminal, unless process/start sets another. */
#define TTY_ROWS     24
#define TTY_COLS     80
#define TTY_SIZE_MAX 65535

/* The longest terminalModes: RFC 4254 has 160 numbers at most. */
#define TTY_MODES_MAX_BYTES 1024

struct process_start_params {
	struct slice process_id;
	const struct json_value *argv; /* strings; may be empty */
	struct path_uri cwd;
	const struct json_value *env; /* string map */
	bool tty;
	uint16_t rows, cols; /* only with tty */
	bool has_term;	     /* only with tty */
	struct slice term;
	struct slice terminal_modes; /* only with tty; empty: not given */
	bool pipe_stdin;
	bool has_arg0;
	struct slice arg0;
	bool has_env_policy;
	struct env_policy env_policy;
	bool has_timeout;
	uint64_t timeout_ms;
	struct slice start_id; /* empty: not given */
	bool has_retention;
	struct retention_params {
		/* the first output, which is kept for good */
		uint64_t head_bytes;
		bool has_tail;	     /* false: the rest of the server's limit */
		uint64_t tail_bytes; /* the newest output */
		/* nothing is dropped: output waits until it is read, */
		bool wait;
		/* or until the client says that what was sent has arrived */
		bool hold;
	} retention;
	bool has_sandbox;
	struct sandbox_context sandbox;
	bool enforce_managed_network;
	struct network_params network;
	bool has_managed_network;
	struct shell_snapshot_params {
		bool given;
		struct slice scope, shell, path; /* of the shell: name, path */
		/* what the state depends on, as it came; NULL: absent */
		const struct json_value *env_policy, *sandbox;
	} snapshot;
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

/* Positions in signals.def. Only the runner knows the numbers of signals. */
enum client_signal {
#define SIGNAL(name) CLIENT_SIGNAL_##name,
#include "signals.def"
#undef SIGNAL
};

/* Without a target the signal is "interrupt" and goes to the group, as with the
 * peer. */
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
	bool has_timeout; /* only if graceful */
	uint64_t timeout_ms;
};

struct process_id_params {
	struct slice process_id;
};

struct process_resize_params {
	struct slice process_id;
	uint16_t rows, cols;
};

struct process_arrived_params {
	struct slice process_id;
	uint64_t bytes; /* of output, in all */
};

struct process_list_params {
	uint64_t after; /* `next` of an earlier answer */
};

/* Which loopback address process/forward connects to. */
enum forward_host { FORWARD_IPV4, FORWARD_IPV6, FORWARD_EITHER };

struct process_forward_params {
	struct slice process_id;
	bool has_of;
	struct slice of; /* the process whose sandbox is meant */
	uint16_t port;
	enum forward_host host;
};

struct process_wait_params {
	struct slice process_id;
	uint64_t timeout_ms; /* UINT64_MAX: no limit given */
};

/* Permission bits, set-id bits and the sticky bit. */
#define FILE_MODE_MAX 07777
/* The end of the year 9999, in milliseconds since 1970. */
#define FILE_TIME_MAX 253402300799999

/* Params of every fs/ method. Each method fills in its own members. */
struct fs_params {
	struct path_uri path;	     /* fs/copy, fs/move: sourcePath */
	struct path_uri destination; /* fs/copy, fs/move */
	bool recursive, force;
	bool overwrite, keep_attributes; /* fs/move */
	/* fs/chmod: permission bits. fs/move: more than FILE_MODE_MAX if there
	 * are none. */
	uint16_t mode;
	bool details;	      /* fs/getMetadata, fs/readDirectory */
	uint64_t modified_ms; /* fs/setTimes: milliseconds since 1970 */
	struct slice target;  /* fs/symlink: not empty, no NUL byte */
	/* fs/writeFile: base64 text as received. fs/writeBlock: decoded
	 * bytes */
	struct slice data;
	struct slice handle_id;
	bool replace; /* fs/open: mode `replace` */
	bool append;  /* fs/open: of a file that is there, and keeps what it has
		       */
	uint64_t offset, len;
	uint64_t watch_id; /* fs/watch, fs/unwatch */
	/* environmentConfig/read: lists of lists of keys */
	struct path_uri cwd;
	const struct json_value *config_paths, *requirements_paths;
	/* capabilityRoots/discoverV1, in the arena */
	struct capability_root {
		struct slice id;
		struct path_uri path;
	} * roots;
	size_t nroots;
	struct fs_walk_options {
		uint64_t max_depth, max_directories, max_entries;
		bool follow_symlinks, prune_hidden;
	} walk;
	bool has_sandbox;
	struct sandbox_context sandbox;
};

/* The most roots that one capabilityRoots/discoverV1 may name; the peer's. */
#define CAPABILITY_ROOTS_MAX 128

/* The most paths that one fs/watchMissing may name. */
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
	struct slice env_var; /* .ptr NULL: none; otherwise appended to value */
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

/* The params of any method, for callers that use a table. */
union method_params {
	struct initialize_params initialize;
	struct session_keep_params session_keep;
	struct session_list_params session_list;
	struct process_start_params process_start;
	struct process_read_params process_read;
	struct process_write_params process_write;
	struct process_signal_params process_signal;
	struct process_terminate_params process_terminate;
	/* for methods with no other params */
	struct process_id_params process_id;
	struct process_resize_params process_resize;
	struct process_arrived_params process_arrived;
	struct process_wait_params process_wait;
	struct process_forward_params process_forward;
	struct process_list_params process_list;
	struct fs_params fs;
	struct watch_params watch;
	struct http_request_params http_request;
};

/* Reads the params of one method, from args_begin() on, into its member of *p.
 */
typedef void params_fn(struct args *a, union method_params *p);

/*
 * Decodes m->params. Returns 0, or -EBADMSG with the message of the -32602
 * error in error[ARGS_ERROR_MAX].
 */
int params_decode(params_fn *params, struct rpc_message *m,
    union method_params *p, char *error);

#define METHOD(name, wire, family, when, repeat)     params_fn params_##name;
#define FILE_METHOD(name, wire, family, use, repeat) params_fn params_##name;
#define HTTP_METHOD(name, wire)			     params_fn params_##name;
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD
