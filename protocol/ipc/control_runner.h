/* SPDX-License-Identifier: ISC */
/*
 * Messages between the broker and runners: RUNNER_* of control.h.
 */
#pragma once

#include "base.h"
#include "control_limits.h"
#include "sandbox_limits.h"

/* Whether sandboxes can redirect TCP (runner/sandbox/enforce/redirect.h). */
enum control_can { CAN_UNKNOWN, CAN_NOT, CAN };

struct control_session_config {
	char session_id[CONTROL_SESSION_ID_MAX];
	char provider_id[80];
	char shell[CONTROL_STRING_MAX]; /* login shell, absolute */
	char home[CONTROL_STRING_MAX];
	char path_map[CONTROL_PATH_MAP_MAX]; /* path_map_write(); "": none */
	bool pid_namespace; /* the runner is pid 1 of its own pid namespace */
	bool netproxy;	    /* execd-netproxy comes along */
	bool userns;	    /* the user namespace comes along */
	uint8_t redirects;  /* enum control_can */
	uint8_t cgroups;    /* bits: which enum cgroup_hierarchy come along */
	uint32_t command_deadline_ms; /* 0: none */
	uint32_t command_cpu_s; /* processor time of a process; 0: no limit */
	/* bytes per second for all commands; 0: no limit */
	uint64_t output_rate;
	/* record terminals, and with record_input also what is typed */
	bool record_tty;
	bool record_input;
	bool record_required; /* refuse terminals that cannot be recorded */
	uint64_t record_max_bytes; /* of each recording */
	uint32_t detached_ttl_ms;  /* how long it is kept without a client */
	uint32_t closed_ttl_ms;	   /* how long a closed process is remembered */
	/* from SIGTERM to SIGKILL at the session's end */
	uint32_t kill_grace_ms;
	uint64_t retention_bytes; /* output kept per process */
	uint64_t max_message_bytes;
	/* For a client that is handed over: */
	uint32_t ping_interval_ms;
	uint32_t pong_deadline_ms; /* 0: no limit */
};

/* What a report about a handed-over client says. */
enum client_event {
	CLIENT_ANSWERED, /* the client got its first answer */
	CLIENT_COUNTED,	 /* only a count of bytes */
	CLIENT_ENDED, /* the last report: the runner has let go of the client */
};

#define CONTROL_CLOSE_REASON_MAX 124 /* reason in a close frame, with NUL */

struct control_client {
	uint8_t event;		 /* enum client_event */
	uint64_t received, sent; /* bytes since the previous report */
	/* ENDED: the code to close with; 0: the client has gone */
	uint32_t close_code;
	char reason[CONTROL_CLOSE_REASON_MAX];
};

#define CONTROL_PROCESS_MAX 256 /* the beginning of a process id */
#define CONTROL_COMMAND_MAX 4096

/* Which file operations the audit log records. */
enum audit_files { AUDIT_FILES_NONE, AUDIT_FILES_WRITES, AUDIT_FILES_ALL };

/* The size of a list of patterns, each with its newline. */
#define CONTROL_PATTERNS_MAX                                                   \
	(REDACT_PATTERNS_MAX * (REDACT_PATTERN_CHARS + 1) + 1)

struct control_audit {
	uint8_t files;				 /* enum audit_files */
	char redact_names[CONTROL_PATTERNS_MAX]; /* one per line */
	char redact_values[CONTROL_PATTERNS_MAX];
};

/* Asks for a file to record a terminal in. */
struct control_recording_wanted {
	char process[CONTROL_PROCESS_MAX];
};

struct control_recording_file {
	uint32_t error; /* an errno; 0: a descriptor comes along */
};

/* Whether the audit log is written. With `required`, commands and files may be
 * used only while it is. */
struct control_audit_state {
	bool works;
	/* The start of this command could not be logged, so it ends. "":
	 * none */
	char process[CONTROL_PROCESS_MAX];
};

/*
 * What a command may reach. The first two are what a runner of version 2 sends:
 * there a list of hosts is restricted.
 */
enum control_reach {
	REACH_ENABLED, /* the host's network */
	REACH_RESTRICTED,
	REACH_LISTED, /* its client's list of hosts */
	REACH_PUBLIC, /* public addresses, within the operator's lists */
	REACHES
};

/* Returns "enabled" and so on; NULL: it is no reach. */
const char *control_reach_name(unsigned reach);

/* What a sandbox was asked for, or what it enforces. */
struct control_policy {
	bool there;
	uint8_t type; /* of `asked`: enum sandbox_type */
	bool files;   /* true: restricted */
	uint8_t
	    network; /* enum control_reach; asked for: one of the first two */
};

struct control_started {
	char process[CONTROL_PROCESS_MAX]; /* the id that the client chose */
	uint32_t pid;			   /* as seen inside the session */
	bool sandboxed, tty;
	struct control_policy asked, enforced;
	uint32_t landlock_abi; /* part of `enforced`; 0: Landlock is not used */
	bool landlock_only;    /* part of `enforced`: no namespaces are used */
	char cwd[CONTROL_STRING_MAX];
	bool cwd_cut;
	char command[CONTROL_COMMAND_MAX]; /* argv, quoted for a shell */
	bool command_cut;
	uint32_t redacted; /* number of secrets that were replaced */
	uint32_t start_us; /* from the request to exec */
};

/* Why a command ended. */
enum end_cause {
	END_ITSELF,
	END_SIGNAL,	      /* sent by anybody who may signal it */
	END_CLIENT,	      /* process/terminate, process/signal kill */
	END_SESSION,	      /* the session ended */
	END_TIMEOUT,	      /* timeoutMs of its client */
	END_COMMAND_DEADLINE, /* command-deadline of the identity */
	END_MEMORY,	      /* killed by the kernel, out of memory */
	END_CPU_TIME,	      /* killed by the kernel, max-cpu-time */
	END_FILE_SIZE,	      /* killed by the kernel, max-file-size */
	END_FILTER,	      /* killed by the sandbox's system-call filter */
	END_RECORDING, /* its terminal could not be recorded any longer */
	END_CAUSES,
};

/* Returns a name such as "command-deadline". Returns NULL for END_ITSELF and
 * for unknown values. */
const char *control_cause_name(unsigned cause);

struct control_exited {
	char process[CONTROL_PROCESS_MAX];
	uint32_t code, signal; /* signal: 0 if it exited by itself */
	bool terminated;       /* by the client or at the session's end */
	bool denied;	       /* the sandbox probably stopped it */
	uint8_t cause;	       /* enum end_cause */
	uint64_t output_bytes, duration_ms;
	uint64_t user_ms, system_ms, max_rss_bytes; /* getrusage(2) */
	/* counted for the whole command, by its control group */
	uint64_t memory_kills, forks_denied;
};

#define CONTROL_LIMIT_MAX 256 /* with the NUL */

/* A limit acted on a command: what its reader was told. Sent before the end of
 * the command. */
struct control_limited {
	char process[CONTROL_PROCESS_MAX];
	char limit[CONTROL_LIMIT_MAX]; /* "killed: memory-max = 256M of ..." */
};

/* A file operation. It is sent before the operation is carried out. */
struct control_file {
	char operation[32]; /* "fs/writeFile" */
	char path[CONTROL_COMMAND_MAX];
	/* or the target of a link; or "" */
	char destination[CONTROL_COMMAND_MAX];
	bool cut; /* a path was longer and was cut */
	bool sandboxed;
};

/*
 * Reports a decision about a command whose network is a list of hosts, or about
 * an http/request, which has no process.
 * netproxy_message.h has the names of its numbers.
 */
struct control_network {
	char process[CONTROL_PROCESS_MAX];
	char host[CONTROL_HOST_MAX];
	char rule[CONTROL_RULE_MAX]; /* the pattern that decided; "": none */
	uint32_t port;
	uint8_t protocol, source, reason;
	bool allowed;
	bool counted;	     /* it is only counted, not recorded */
	uint32_t unrecorded; /* different ones that were only counted before */
};

struct control_http {
	char method[32];
	bool method_cut;
	char url[CONTROL_COMMAND_MAX];
	bool url_cut;
	uint32_t redacted;
};

/* What a runner knows of its session, for a broker that adopts it. */
struct control_identity {
	/* the client's address, also of the last one */
	char peer[CONTROL_PEER_MAX];
	uint32_t generation; /* of attachments; 0: there never was one */
	uint32_t watches;    /* connections that have ever watched it */
	uint32_t recordings; /* recordings of terminals so far */
	uint64_t age_ms;     /* since the first attachment */
	bool empty;	     /* as in control_detached */
	bool audited;	     /* it was told of an audit log */
	bool terminating;
};

/* A running command whose start was reported before. */
struct control_running {
	char process[CONTROL_PROCESS_MAX];
};

/* An operator is shown no more of the running commands. */
#define CONTROL_SHOWN_MAX	  32
#define CONTROL_SHOWN_COMMAND_MAX 512

struct control_shown {
	char process[CONTROL_PROCESS_MAX];
	char command[CONTROL_SHOWN_COMMAND_MAX]; /* argv, without secrets */
	uint64_t age_ms;
	uint32_t pid; /* as seen inside the session */
	uint32_t cut; /* `command` is only the beginning */
};

struct control_commands {
	uint32_t count;
	bool more; /* there are others */
	/* in the byte order of this machine */
	struct control_shown commands[CONTROL_SHOWN_MAX];
};

/* The longest time that an operator can permit: 30 days. */
#define CONTROL_KEEP_MAX_MS (30u * 24 * 3600 * 1000)

/* How long the session is to be kept without a client. */
struct control_keep_wanted {
	uint32_t number; /* of the question; its answer has it, too */
	bool keep;	 /* false: no longer than any other session */
	bool
	    running; /* a command runs now, and the session waits for its end */
	uint32_t ms;
};

/* The answer: what is granted, or why it is not. */
struct control_keep {
	uint32_t number;
	uint32_t ms, max_ms;
	char reason[256]; /* "": it is granted */
};

/* What was granted, for a broker that adopts the session, and what has changed
 * since then. */
struct control_keep_state {
	bool running;
	uint32_t ms, max_ms;
	uint64_t since_ms;    /* for so long nothing has been running */
	uint64_t detached_ms; /* for so long no client has had it */
};

/* Asks for the sessions of the identity, in the order of their numbers. */
struct control_list_wanted {
	uint32_t number; /* of the question; its answer has it, too */
	uint64_t after;	 /* the session with this number; 0: from the first */
};

#define CONTROL_NONE UINT64_MAX /* it is not known, or does not apply */

struct control_listed {
	char session_id[CONTROL_SESSION_ID_MAX];
	char peer[CONTROL_PEER_MAX]; /* of its client, or its last client */
	uint64_t number, age_ms;
	uint64_t detached_ms; /* NONE: it is attached */
	uint64_t ends_in_ms;  /* if nobody resumes it; NONE: it is attached */
	uint64_t keep_ms;     /* NONE: it is not kept */
	uint64_t commands;    /* that run; NONE: not known */
	uint32_t watchers;
	uint32_t keeps_running; /* it is kept until its command ends */
};

#define CONTROL_LISTED_MAX 64

struct control_list {
	uint32_t number;
	uint32_t count;
	bool more;	 /* there are others behind these */
	bool incomplete; /* runners have not answered a new broker yet */
	/* in the byte order of this machine */
	struct control_listed sessions[CONTROL_LISTED_MAX];
};

struct control_redirects {
	bool possible;
};

struct control_attach {
	uint32_t generation;
	char peer[CONTROL_PEER_MAX]; /* "websocket IP:PORT" or "stdio" */
};

/* Asks for a sign of life of a client that was handed over, and answers that
 * there is one. If there is none, the runner lets go of the client instead. The
 * number 0 asks for the runner's own. */
struct control_runner_probe {
	uint32_t number;
};

struct control_detached {
	uint32_t generation;
	uint8_t end; /* enum channel_end */
	bool empty;  /* nothing was ever started or opened in it */
};

/* The signed or named token of the client that attached last. The runner keeps
 * it for the next broker, and the key in it says nothing of a secret that a
 * token does not say. */
struct control_token {
	bool there;	    /* false: that client showed something else */
	uint8_t key[32];    /* a digest: which one verified it */
	uint8_t issuer[32]; /* SHA-256 of `iss`; zero: it has none */
	uint64_t until_s;   /* `exp`, with its sign */
	/* when it was verified, or the first one of its owner that had the
	 * session; seconds since 1970 */
	uint64_t since_s;
	char subject[CONTROL_STRING_MAX]; /* "": it has none */
};

/* A connection that only watches. */
struct control_watch {
	uint32_t number; /* counts the watching connections of the session */
	char peer[CONTROL_PEER_MAX];
};

struct control_unwatched {
	uint32_t number;
	uint8_t end; /* enum channel_end */
};
