/*
 * Messages of the two control channels (DESIGN.md section 3): front-end <->
 * monitor and monitor <-> runner. AF_UNIX SOCK_SEQPACKET: one message is one
 * packet, descriptors travel with their message. Every message begins with
 * its type; the rest is the struct beside the type, field by field. A
 * message that does not decode exactly is a compromised peer.
 *
 * Requests are even, their answers odd.
 */
#ifndef CONTROL_H
#define CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "redact_limits.h"
#include "sandbox_limits.h"

#define CONTROL_FD	       3 /* in every child of the monitor */
#define CONTROL_MESSAGE_MAX    (24u << 10)
#define CONTROL_FDS_MAX	       16
#define CONTROL_CREDENTIAL_MAX (16u << 10) /* any that a request can hold */
#define CONTROL_PEER_MAX       96 /* "websocket [::1]:65535", with NUL */
#define CONTROL_SESSION_ID_MAX 40 /* a UUID, with NUL */
#define CONTROL_STRING_MAX     1024
#define CONTROL_GRANT_BYTES    16
#define CONTROL_SUBJECT_MAX    256
#define CONTROL_SECRET_BYTES   32

enum control_type {
	/* monitor -> front-end, events */
	MON_EV_CONFIGURE = 1,	  /* control_configure + fds of `helpers` */
	MON_EV_RUNNER_EXITED = 3, /* control_runner_exited */
	MON_EV_RELOAD = 5,	  /* the same again, in place of the old one */
	MON_EV_DRAIN = 7,	  /* nothing: no new sessions */
	MON_EV_STOP = 9,	  /* nothing: tell the clients and end them */
	MON_EV_LISTENER = 11,	  /* control_listener + its fds */

	/* front-end -> monitor, requests and their answers */
	MON_REQ_READY = 10,	   /* control_ready; once, before all others */
	MON_REQ_AUTHENTICATE = 12, /* control_authenticate (+ the client's
				    * socket, of LISTENER_UNIX) */
	MON_ANS_AUTHENTICATE = 13, /* control_verdict */
	MON_REQ_OPEN = 14,	   /* control_open */
	MON_ANS_OPEN = 15,	   /* control_session (+ channel fd) */
	MON_REQ_RESUME = 16,	   /* control_resume */
	MON_ANS_RESUME = 17,	   /* control_session (+ channel fd) */
	MON_REQ_CLOSE = 18,	   /* control_close: the connection is over */
	MON_ANS_CLOSE = 19,	   /* control_closed */
	MON_REQ_DONE = 20,	   /* nothing: stdio reached its end */
	MON_REQ_WATCH = 22,	   /* control_resume */
	MON_ANS_WATCH = 23,	   /* control_session (+ channel fd) */
	MON_REQ_METRICS = 24,	   /* control_ask_metrics */
	MON_ANS_METRICS = 25,	   /* control_metrics */
	MON_REQ_REFUSED = 26,	   /* control_refused; has no answer */

	/* monitor -> runner, orders */
	RUNNER_ORDER_CONFIGURE =
	    30, /* control_session_config + fds: execd-http, door, cgroups */
	RUNNER_ORDER_ATTACH = 32,    /* control_attach + channel fd */
	RUNNER_ORDER_DETACH = 34,    /* nothing */
	RUNNER_ORDER_TERMINATE = 36, /* nothing */
	RUNNER_ORDER_WATCH = 38,     /* control_watch + channel fd */
	RUNNER_ORDER_SANDBOX = 40,   /* struct sandbox_limits; once, before the
				      * first ATTACH */
	RUNNER_ORDER_AUDIT = 42,     /* control_audit; once, before SANDBOX */
	RUNNER_ORDER_RECORDING = 44, /* control_recording: is there a record? */
	RUNNER_ORDER_CAST = 46,	     /* control_cast_file (+ fd), for CAST */

	/* runner -> monitor, reports */
	RUNNER_REPORT_DETACHED = 41,  /* control_detached */
	RUNNER_REPORT_UNWATCHED = 43, /* control_unwatched */
	RUNNER_REPORT_STARTED = 45,   /* control_started; with `audit` */
	RUNNER_REPORT_EXITED = 47,    /* control_exited; with `audit` */
	RUNNER_REPORT_MASKS = 49,     /* nothing + fd; at most once */
	RUNNER_REPORT_FILE = 51,      /* control_file; as AUDIT says */
	RUNNER_REPORT_HTTP = 53,      /* control_http; likewise */
	RUNNER_REPORT_END = 57,	      /* nothing: its client ends it */
	RUNNER_REPORT_CAST = 55,      /* control_cast: waits for its file */

	/* monitor <-> template of runners */
	TEMPLATE_ORDER_START = 82,    /* control_template_start + fds: the
				       * runner's control channel, joins */
	TEMPLATE_REPORT_STARTED = 83, /* control_template_started */

	/* to a helper of the front-end's: the monitor's, then its own */
	KEYS_CONFIGURE = 60, /* control_key + fd of the key, each in turn */
	KEYS_SERVE = 62,     /* control_serve: from now on only these: */
	KEYS_SIGN = 64,	     /* control_sign; of the key process */
	KEYS_SIGNED = 65,    /* control_signed */
	KEYS_TRUST = 66,     /* control_trust + fds: client CA, revocations */
	KEYS_VERIFY = 68,    /* control_verify; of the certificate process */
	KEYS_VERIFIED = 69,  /* control_verified */

	/* monitor -> starter, orders and their answers */
	STARTER_BEGIN = 70,   /* nothing + fd for STARTER_EXITED; once */
	STARTER_READY = 71,   /* control_starter_error */
	STARTER_START = 72,   /* control_start + fds: runner's control, list */
	STARTER_STARTED = 73, /* control_runner_started + fds of `cgroups` */
	STARTER_DOOR = 74,    /* control_door */
	STARTER_OPENED = 75,  /* control_starter_error (+ fd) */
	STARTER_SWEEP = 76,   /* control_start + fds: what is left, list */
	STARTER_KILL = 78,    /* control_pid */
	STARTER_EXITED = 79,  /* control_runner_status; on its own channel */
	STARTER_END = 80,     /* control_pid: it was heard, its pid is free */
};

#define CONTROL_LISTENERS_MAX 16
#define CONTROL_NETS_MAX      16
#define CONTROL_NET_BYTES     17 /* IPv6 address, then bits of its prefix */

enum listener_kind {
	LISTENER_WS,	/* a listening stream socket */
	LISTENER_STDIO, /* two descriptors: input, output */
	LISTENER_UNIX,	/* a listening AF_UNIX socket, WebSocket over it */
};

/* Programs that do for the front-end what it must not do itself. */
enum tls_helper {
	TLS_HELPER_KEYS,	 /* signs handshakes */
	TLS_HELPER_CERTIFICATES, /* verifies those of clients */
	TLS_HELPERS
};

/* Everything the front-end needs; it opens nothing itself. */
struct control_configure {
	uint32_t uid, gid; /* become this; only if `drop` */
	bool drop;	   /* root mode */
	uint8_t helpers;   /* bits: to which enum tls_helper a channel comes */
	uint32_t ping_interval_ms;
	uint32_t pong_deadline_ms;
	uint32_t pre_auth_deadline_ms;
	uint32_t max_connections;
	uint32_t max_per_source; /* 0: as many as there may be in all */
	uint32_t max_unauthenticated;
	/* A source collects these; refused while it has `threshold`. */
	uint32_t penalty_auth_ms, penalty_deadline_ms, penalty_protocol_ms;
	uint32_t penalty_crash_ms;
	uint32_t penalty_threshold_ms, penalty_max_ms;
	uint32_t exempt; /* count; neither cap nor penalty for these */
	uint8_t exempt_nets[CONTROL_NETS_MAX * CONTROL_NET_BYTES];
	uint64_t max_frame_bytes;
	uint64_t max_message_bytes;
	uint32_t listeners; /* so many MON_EV_LISTENER follow */
};

enum client_certificate {
	CLIENT_CERTIFICATE_NONE, /* not asked for */
	CLIENT_CERTIFICATE_OPTIONAL,
	CLIENT_CERTIFICATE_REQUIRED,
};

/*
 * Its descriptors, in this order: LISTENER_STDIO input and output; else the
 * listening socket, with `tls` the certificate chain (PEM), and the client
 * CA's certificates (PEM) if client certificates are asked for.
 */
struct control_listener {
	uint32_t id; /* the monitor's number, never reused for another */
	uint8_t kind;
	bool tls;
	bool operate;		    /* answers /healthz and /metrics */
	uint8_t client_certificate; /* enum client_certificate */
	uint32_t key;		    /* `tls`: number in the key process */
};

#define CONTROL_LISTENER_FDS_MAX 3

/* What the front-end could confine itself with; the monitor logs the rest. */
struct control_ready {
	bool root_empty; /* no file system */
	bool landlock;
	bool seccomp;
	bool user_changed;
};

enum credential_kind {
	CREDENTIAL_NONE,    /* no Authorization header */
	CREDENTIAL_INVALID, /* a header, but no usable bearer token */
	CREDENTIAL_BEARER,
};

/*
 * What the certificate process found out about a client. The front-end carries
 * it to the monitor and can make none of its own (voucher.h).
 */
struct control_voucher {
	uint32_t listener;		   /* whose client CA it was */
	uint64_t made_ms;		   /* now_ms() */
	uint8_t digest[32];		   /* SHA-256 of the DER form */
	char subject[CONTROL_SUBJECT_MAX]; /* RFC 4514; empty: longer */
	uint8_t seal[CONTROL_SECRET_BYTES];
};

struct control_authenticate {
	uint32_t conn;	      /* the front-end's number, never reused */
	uint32_t listener;    /* control_listener.id */
	uint8_t kind;	      /* enum credential_kind */
	bool has_certificate; /* `voucher` is of it */
	struct control_voucher voucher;
	char peer[CONTROL_PEER_MAX]; /* for messages: "websocket IP:PORT" */
	char credential[CONTROL_CREDENTIAL_MAX];
};

/* A client certificate, or that there was none: in TLS, before any request. */
struct control_refused {
	uint32_t listener;
	char peer[CONTROL_PEER_MAX];
	char reason[CONTROL_SUBJECT_MAX + 128];
};

/* Rows of PROTOCOL.md section 1.5. */
enum verdict {
	VERDICT_GRANTED,
	VERDICT_MISSING_TOKEN,
	VERDICT_INVALID_HEADER,
	VERDICT_INVALID_TOKEN,
	VERDICT_INVALID_JWT,
	VERDICT_EXPIRED_JWT,
	VERDICT_EARLY_JWT,
	VERDICT_ISSUER,
	VERDICT_AUDIENCE,
	VERDICT_BUSY,	  /* a limit: 503 */
	VERDICT_STRANGER, /* nobody's certificate or user: 401 */
};
#define VERDICTS (VERDICT_STRANGER + 1)

struct control_verdict {
	uint32_t conn;
	uint8_t verdict;
	uint8_t grant[CONTROL_GRANT_BYTES]; /* zero unless GRANTED */
};

struct control_open {
	uint32_t conn;
	uint8_t grant[CONTROL_GRANT_BYTES];
};

struct control_resume { /* also of MON_REQ_WATCH */
	uint32_t conn;
	uint8_t grant[CONTROL_GRANT_BYTES];
	char session_id[CONTROL_SESSION_ID_MAX];
};

enum session_result {
	SESSION_OK,	  /* a channel fd travels along */
	SESSION_UNKNOWN,  /* resume: no such session for this identity */
	SESSION_ATTACHED, /* resume: another connection has it */
	SESSION_LIMIT,	  /* open, watch: a limit */
	SESSION_FAILED,	  /* open, watch: the runner could not be reached */
};

struct control_session {
	uint32_t conn;
	uint8_t result; /* enum session_result */
	char session_id[CONTROL_SESSION_ID_MAX];
	char reason[256]; /* a sentence, unless SESSION_OK */
};

struct control_close {
	uint32_t conn;
	bool channel_ended; /* the runner hung up first */
};

/* Why a session channel ended, as the runner or the kernel told it. */
enum channel_end {
	CHANNEL_END_DETACHED, /* the connection went away first */
	CHANNEL_END_PROTOCOL, /* the client broke the envelope's rules */
	CHANNEL_END_REPLACED, /* resumed elsewhere */
	CHANNEL_END_RUNNER,   /* the runner is gone */
	CHANNEL_END_ASKED,    /* likewise, as its client asked */
	CHANNEL_END_CRASHED,  /* likewise, by a fault of its own */
};

struct control_closed {
	uint32_t conn;
	uint8_t end;	  /* enum channel_end */
	char reason[256]; /* RUNNER, CRASHED: "killed by signal 9" */
};

struct control_runner_exited {
	uint32_t conn;
	char reason[256];
};

struct control_session_config {
	char session_id[CONTROL_SESSION_ID_MAX];
	char provider_id[80];
	char shell[CONTROL_STRING_MAX]; /* login shell, absolute */
	char home[CONTROL_STRING_MAX];
	bool pid_namespace; /* the runner is pid 1 of its own */
	bool door;	    /* the sandbox door travels along */
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
};

/* execd's programs, for control_metrics. */
enum program {
	PROGRAM_MONITOR,
	PROGRAM_FRONTEND,
	PROGRAM_KEYS,
	PROGRAM_RUNNER,
	PROGRAMS
};

/* How long it took commands to start, up to so many microseconds, and longer
 * than all of them. */
#define METRICS_BUCKETS                                                        \
	{                                                                      \
		1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000 \
	}
#define METRICS_NBUCKETS 10

#define METRICS_CAUSES_MAX 16 /* at least END_CAUSES */

struct control_ask_metrics {
	uint32_t conn;
};

/* What the monitor counts. The arrays are of this machine. */
struct control_metrics {
	uint32_t conn;
	uint64_t attached, detached, ending; /* sessions now */
	uint64_t processes;		     /* now */
	uint64_t started;
	uint64_t exited[METRICS_CAUSES_MAX]; /* by enum end_cause */
	uint64_t denied;		     /* by a sandbox, likely */
	uint64_t output_bytes;		     /* of those that have exited */
	uint64_t start_us[METRICS_NBUCKETS]; /* of `started` */
	uint64_t start_us_sum;
	uint64_t records, records_lost;
	bool record_failing;
	uint64_t programs[PROGRAMS];	 /* now */
	uint64_t memory_bytes[PROGRAMS]; /* resident, of all of them */
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
struct control_cast {
	char process[CONTROL_PROCESS_MAX];
};

struct control_cast_file {
	uint32_t error; /* errno; 0: a descriptor comes along */
};

/* With `required`: commands and files may be used only while it works. */
struct control_recording {
	bool works;
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
	char cwd[CONTROL_STRING_MAX];
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
	char url[CONTROL_COMMAND_MAX];
	bool url_cut;
	uint32_t redacted;
};

#define CONTROL_TBS_MAX	      1024 /* TLS's longest is 2 * 32 + 4 + 133 */
#define CONTROL_SIGNATURE_MAX 1024 /* RSA with 8192 bits */

/* control_listener.key of the key that comes along. */
struct control_key {
	uint32_t key;
};

struct control_sign {
	uint32_t serial;
	uint32_t key;
	uint32_t scheme; /* SignatureScheme of RFC 8446 section 4.2.3 */
	uint32_t len;
	uint8_t tbs[CONTROL_TBS_MAX];
};

struct control_signed {
	uint32_t serial;
	uint32_t len; /* 0: refused */
	uint8_t signature[CONTROL_SIGNATURE_MAX];
};

struct control_template_start {
	bool isolated;	   /* root mode: own namespaces, become this: */
	uint32_t uid, gid; /* with the template's groups */
	uint8_t joins;	   /* bits: which enum cgroup_hierarchy travel along */
};

/* The last variable of a template's environment, and not its runners': what
 * the linker finds before the fork is found once, on pages that all share. */
#define CONTROL_TEMPLATE_VARIABLE "LD_BIND_NOW=1"

struct control_template_started {
	uint32_t pid;	/* 0: it could not be forked */
	uint32_t error; /* why not, an errno */
};

/* control_listener.id; the second descriptor only with `crl`. Both PEM. */
struct control_trust {
	uint32_t listener;
	bool crl;
};

struct control_serve {
	uint8_t secret[CONTROL_SECRET_BYTES]; /* seals vouchers */
};

#define CONTROL_CHAIN_MAX (12u << 10)

struct control_verify {
	uint32_t serial;
	uint32_t listener;
	uint32_t len;
	uint8_t chain[CONTROL_CHAIN_MAX]; /* DER, the client's own first */
};

struct control_verified {
	uint32_t serial;
	uint32_t error;			/* X509_V_ERR_*, 0: it is good */
	struct control_voucher voucher; /* sealed only if it is good */
};

/* Whom a runner becomes, and its session's control group. What has no fixed
 * length is in the list that comes along (starter_identity.h). */
struct control_start {
	char session_id[CONTROL_SESSION_ID_MAX];
	char name[80]; /* of the identity, for the log */
	char home[CONTROL_STRING_MAX];
	uint32_t uid, gid, umask;
	uint32_t session_processes, session_cpu_percent;
	uint64_t session_memory_bytes;
	uint32_t max_processes, max_open_files, max_cpu_ms;
	uint64_t max_memory_bytes, max_file_bytes;
};

struct control_runner_started {
	uint32_t error; /* an errno, or 0 */
	uint32_t pid;
	uint8_t cgroups; /* bits: which enum cgroup_hierarchy travel along */
};

struct control_door {
	uint32_t uid, gid;
};

struct control_starter_error {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
};

struct control_pid {
	uint32_t pid;
};

struct control_runner_status {
	uint32_t pid;
	uint32_t status; /* as of wait(2) */
};

struct control_attach {
	uint32_t generation;
	char peer[CONTROL_PEER_MAX]; /* "websocket IP:PORT" or "stdio" */
};

struct control_detached {
	uint32_t generation;
	uint8_t end; /* enum channel_end */
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

/* Appends type and fields. */
void control_put(struct buf *b, enum control_type type, const void *payload);

/* The type of a message, or 0 when it is too short or not known. */
enum control_type control_peek(const void *message, size_t len);

/* Decodes the payload of a message of that type into its struct, which is
 * *payload. 0, or -EBADMSG. A type without fields takes NULL. */
int control_get(
    const void *message, size_t len, enum control_type type, void *payload);

/* "invalid websocket bearer token": what a refused client and the log are
 * told (PROTOCOL.md section 1.5). */
const char *control_verdict_name(enum verdict verdict);

/* "MON_REQ_OPEN", for logs. */
const char *control_name(enum control_type type);

#endif
