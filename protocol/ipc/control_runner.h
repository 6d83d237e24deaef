/* SPDX-License-Identifier: ISC */
/*
 * What runners are told and report: RUNNER_* of control.h.
 */
#ifndef CONTROL_RUNNER_H
#define CONTROL_RUNNER_H

#include <stdbool.h>
#include <stdint.h>

#include "control_limits.h"
#include "redact_limits.h"

struct control_session_config {
	char session_id[CONTROL_SESSION_ID_MAX];
	char provider_id[80];
	char shell[CONTROL_STRING_MAX]; /* login shell, absolute */
	char home[CONTROL_STRING_MAX];
	bool pid_namespace; /* the runner is pid 1 of its own */
	bool userns;	    /* the user namespace travels along */
	bool placeholders;  /* and the list of its user's placeholders */
	uint8_t cgroups;    /* bits: which enum cgroup_hierarchy travel along */
	uint32_t command_deadline_ms; /* 0: none */
	uint64_t output_rate;	      /* bytes a second in all; 0: none */
	bool record_tty;	      /* terminals; and what is typed, too: */
	bool record_input;
	bool record_required;	   /* what cannot be recorded is not run */
	uint64_t record_max_bytes; /* of each recording */
	uint32_t closed_ttl_ms;	   /* a closed process is remembered */
	uint32_t kill_grace_ms;	   /* TERM to KILL at the session's end */
	uint64_t retention_bytes;  /* of output, per process */
	uint64_t max_message_bytes;
	/* Of a client that is handed over: */
	uint64_t max_frame_bytes;
	uint32_t ping_interval_ms;
	uint32_t pong_deadline_ms; /* 0: none */
};

/* What becomes of a client that was handed over. */
enum client_event {
	CLIENT_ANSWERED, /* for the first time */
	CLIENT_COUNTED,	 /* only the bytes */
	CLIENT_ENDED,	 /* the last of these: the runner has let go of it */
};

#define CONTROL_CLOSE_REASON_MAX 124 /* of a close frame, with NUL */

struct control_client {
	uint8_t event;		 /* enum client_event */
	uint64_t received, sent; /* bytes since the report before */
	uint32_t close_code;	 /* ENDED: to end it with; 0: it is gone */
	char reason[CONTROL_CLOSE_REASON_MAX];
};

#define CONTROL_PROCESS_MAX 256 /* of an id the beginning */
#define CONTROL_COMMAND_MAX 4096

/* Operations on files that are recorded. */
enum audit_files { AUDIT_FILES_NONE, AUDIT_FILES_WRITES, AUDIT_FILES_ALL };

/* Patterns of secrets, each with its line end. */
#define CONTROL_PATTERNS_MAX                                                   \
	(REDACT_PATTERNS_MAX * (REDACT_PATTERN_CHARS + 1) + 1)

struct control_audit {
	uint8_t files;				 /* enum audit_files */
	char redact_names[CONTROL_PATTERNS_MAX]; /* one on each line */
	char redact_values[CONTROL_PATTERNS_MAX];
};

/* A terminal that is recorded. */
struct control_recording_wanted {
	char process[CONTROL_PROCESS_MAX];
};

struct control_recording_file {
	uint32_t error; /* errno; 0: a descriptor comes along */
};

/* With `required`: commands and files may be used only while it works. */
struct control_recording {
	bool works;
	/* The start of this one is not on record: it ends. "": of none */
	char process[CONTROL_PROCESS_MAX];
};

/* What a sandbox is asked for, or enforces. */
struct control_policy {
	bool there;
	uint8_t type;	     /* asked: enum sandbox_type */
	bool files, network; /* restricted */
};

struct control_started {
	char process[CONTROL_PROCESS_MAX]; /* the client's id */
	uint32_t pid;			   /* as the session sees it */
	bool sandboxed, tty;
	struct control_policy asked, enforced;
	uint32_t landlock_abi; /* of `enforced`; 0: none */
	bool landlock_only;    /* likewise: there are no namespaces */
	char cwd[CONTROL_STRING_MAX];
	bool cwd_cut;
	char command[CONTROL_COMMAND_MAX]; /* argv, quoted for a shell */
	bool command_cut;
	uint32_t redacted; /* secrets taken out of it */
	uint32_t start_us; /* from the request to exec */
};

/* Why a command ended, other than by itself. */
enum end_cause {
	END_ITSELF,
	END_SIGNAL,	      /* of whoever may send it one */
	END_CLIENT,	      /* process/terminate, process/signal kill */
	END_SESSION,	      /* the session's end */
	END_TIMEOUT,	      /* its client's timeoutMs */
	END_COMMAND_DEADLINE, /* the identity's */
	END_MEMORY,	      /* out of it: the kernel */
	END_CPU_TIME,	      /* max-cpu-time: likewise */
	END_FILE_SIZE,	      /* max-file-size: likewise */
	END_FILTER,	      /* the sandbox's, of system calls */
	END_RECORDING,	      /* its terminal could not be recorded on */
	END_CAUSES,
};

/* "command-deadline"; NULL for END_ITSELF and what is none. */
const char *control_cause_name(unsigned cause);

struct control_exited {
	char process[CONTROL_PROCESS_MAX];
	uint32_t code, signal; /* signal: 0 for none */
	bool terminated;       /* by the client or the session's end */
	bool denied;	       /* the sandbox was in its way */
	uint8_t cause;	       /* enum end_cause */
	uint64_t output_bytes, duration_ms;
	uint64_t user_ms, system_ms, max_rss_bytes; /* getrusage(2) */
	uint64_t memory_kills, forks_denied; /* of all of it, by its group */
};

/* Before it is done. */
struct control_file {
	char operation[32]; /* "fs/writeFile" */
	char path[CONTROL_COMMAND_MAX];
	char destination[CONTROL_COMMAND_MAX]; /* or a link's target; or "" */
	bool cut;			       /* one of them was longer */
	bool sandboxed;
};

struct control_http {
	char method[32];
	bool method_cut;
	char url[CONTROL_COMMAND_MAX];
	bool url_cut;
	uint32_t redacted;
};

/* The session as its runner knows it, for a broker that does not. */
struct control_identity {
	char peer[CONTROL_PEER_MAX]; /* where its client is, or was */
	uint32_t generation; /* of attachments; 0: nobody ever attached */
	uint32_t watches;    /* connections that ever watched it */
	uint32_t recordings; /* recordings of terminals, ever */
	uint64_t age_ms;     /* since the first attachment */
	bool empty;	     /* as in control_detached */
	bool audited;	     /* it was told of an audit log */
	bool terminating;
};

/* A command that runs, whose start was reported. */
struct control_running {
	char process[CONTROL_PROCESS_MAX];
};

struct control_attach {
	uint32_t generation;
	char peer[CONTROL_PEER_MAX]; /* "websocket IP:PORT" or "stdio" */
};

struct control_detached {
	uint32_t generation;
	uint8_t end; /* enum channel_end */
	bool empty;  /* nothing was ever started or opened in the session */
};

/* A connection that only watches. */
struct control_watch {
	uint32_t number; /* of the session's watching connections, ever */
	char peer[CONTROL_PEER_MAX];
};

struct control_unwatched {
	uint32_t number;
	uint8_t end; /* enum channel_end */
};

#endif
