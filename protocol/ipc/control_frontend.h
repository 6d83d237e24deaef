/* SPDX-License-Identifier: ISC */
/*
 * Messages between the front-end and the broker: BROKER_* of control.h.
 */
#pragma once

#include "control_helper.h"

#define CONTROL_LISTENERS_MAX 16
#define CONTROL_TRUSTED_MAX   64 /* certificates or lists in one file */
#define CONTROL_NETS_MAX      16
/* IPv6 address, then the length of its prefix */
#define CONTROL_NET_BYTES 17

enum listener_kind {
	LISTENER_WS,	/* a listening stream socket */
	LISTENER_STDIO, /* two descriptors: input, output */
	LISTENER_UNIX,	/* a listening AF_UNIX socket that carries WebSocket */
};

/* Networks: an address in IPv6 form and the length of its prefix each. */
struct nets {
	uint8_t items[CONTROL_NETS_MAX][CONTROL_NET_BYTES];
	uint32_t count;
};

enum client_certificate {
	CLIENT_CERTIFICATE_NONE, /* clients are not asked for one */
	CLIENT_CERTIFICATE_OPTIONAL,
	CLIENT_CERTIFICATE_REQUIRED,
};

/* What the values of frontend_keys.def and of the broker's own keys are in C.
 */
#define VALUE_auth		 bool
#define VALUE_bool		 bool
#define VALUE_serve		 bool
#define VALUE_bytes		 uint64_t
#define VALUE_client_certificate uint32_t /* enum client_certificate */
#define VALUE_count		 uint32_t
#define VALUE_duration		 uint32_t /* ms */
#define VALUE_nets		 struct nets
#define VALUE_optional_count	 uint32_t /* 0: none */
#define VALUE_optional_duration	 uint32_t /* ms; 0: none */

struct frontend_limits {
#define FRONTEND_LIMIT(keyword, type, member, ...) VALUE_##type member;
#include "frontend_keys.def"
};

struct frontend_listener {
#define FRONTEND_LISTENER(keyword, type, member, ...) VALUE_##type member;
#include "frontend_keys.def"
};

/* Everything that the front-end needs. It opens nothing itself. */
struct control_configure {
	/* bits: for which enum tls_helper a channel comes along */
	uint8_t helpers;
	struct frontend_limits limits;
	uint32_t listeners; /* number of BROKER_EV_LISTENER that follow */
};

/* Why no new session may be opened. */
enum drain_reason {
	DRAIN_NONE, /* new sessions may be opened */
	DRAIN_OPERATOR,
	DRAIN_STOPPING,
};

struct control_drain {
	uint8_t why; /* enum drain_reason */
};

/* Why no session opens, which the front-end cannot know itself. */
enum broker_ill {
	BROKER_WELL,
	BROKER_ILL_AUDIT, /* the audit log cannot be written */
	BROKER_ILL_ROOT,  /* root's execd does not answer */
};

struct control_ping {
	uint8_t ill; /* enum broker_ill */
};

/* How much this host can take, for the agent of a proxy. */
struct control_load {
	uint8_t room_percent; /* 0: no new session; 100: all of its places */
};

/*
 * A listener. Its descriptors, in this order: for LISTENER_STDIO the input and
 * the output; otherwise the listening socket, with `tls` the certificate chain
 * (PEM), and if client certificates are asked for the client CA's certificates
 * (PEM).
 */
struct control_listener {
	uint32_t id; /* given by the broker, never used for another */
	uint8_t kind;
	bool tls;
	struct frontend_listener keys;
	bool has_operators;  /* /metrics needs a credential */
	uint32_t key;	     /* `tls`: number of its key in the key process */
	struct nets trusted; /* their PROXY header is believed */
};

#define CONTROL_LISTENER_FDS_MAX 3

/* Which means of confinement worked in the front-end. The broker logs those
 * that did not. */
struct control_ready {
	bool root_empty; /* sees no file system */
	bool landlock;
	bool seccomp;
	bool user_changed;
};

enum credential_kind {
	CREDENTIAL_NONE,    /* no Authorization header */
	CREDENTIAL_INVALID, /* a header, but no usable bearer token */
	CREDENTIAL_BEARER,
};

/* What the header of a signed token says, as far as it fits: which key is to be
 * tried. */
struct control_token_header {
	char alg[CONTROL_ALG_MAX];
	char kid[CONTROL_KID_MAX];
};

struct control_authenticate { /* also for BROKER_REQ_METRICS */
	uint32_t conn;	      /* given by the front-end, never used again */
	uint32_t listener;    /* control_listener.id */
	uint8_t kind;	      /* enum credential_kind */
	bool has_certificate; /* `cert_verdict` is filled in */
	struct control_cert_verdict cert_verdict;
	char peer[CONTROL_PEER_MAX];  /* for messages: "websocket IP:PORT" */
	char proxy[CONTROL_PEER_MAX]; /* a trusted one in between, or "" */
	struct control_token_header token_header; /* of the credential */
	char credential[CONTROL_CREDENTIAL_MAX];
};

/* A connection that was refused during TLS, before any request, because of its
 * client certificate or because it had none. */
struct control_refused {
	uint32_t listener;
	char peer[CONTROL_PEER_MAX];
	char proxy[CONTROL_PEER_MAX];
	char reason[CONTROL_SUBJECT_MAX + 128];
};

/* Rows of doc/protocol.md section 1.5. */
enum verdict {
	VERDICT_GRANTED,
	/* an expired token, and a session of it: only RESUME is granted */
	VERDICT_RESUME,
	VERDICT_MISSING_TOKEN, /* from here on: refused */
	VERDICT_INVALID_HEADER,
	VERDICT_INVALID_TOKEN,
	VERDICT_INVALID_JWT,
	VERDICT_EXPIRED_JWT,
	VERDICT_EARLY_JWT,
	VERDICT_ISSUER,
	VERDICT_AUDIENCE,
	VERDICT_BUSY,	  /* a limit was reached: 503 */
	VERDICT_STRANGER, /* certificate or user of no identity: 401 */
	/* valid signed token with a subject of no identity: 401 */
	VERDICT_SUBJECT,
	VERDICT_NOT_OPERATOR,  /* known, and may not read /metrics: 403 */
	VERDICT_EXPIRED_TOKEN, /* one with a name */
	VERDICT_MEMBER,	       /* of a peer-group, since the last reload */
	VERDICT_LOCKED,	       /* the operator has locked the identity */
};
#define VERDICTS (VERDICT_LOCKED + 1)

struct control_verdict {
	uint32_t conn;
	uint8_t verdict;
	uint8_t grant[CONTROL_GRANT_BYTES]; /* zero if refused */
};

struct control_open {
	uint32_t conn;
	uint8_t grant[CONTROL_GRANT_BYTES];
};

struct control_resume { /* also for BROKER_REQ_WATCH */
	uint32_t conn;
	uint8_t grant[CONTROL_GRANT_BYTES];
	char session_id[CONTROL_SESSION_ID_MAX];
	bool take_over; /* RESUME: also from the connection that has it */
};

enum session_result {
	SESSION_OK,	  /* never sent: the runner answers the client */
	SESSION_UNKNOWN,  /* resume: this identity has no such session */
	SESSION_ATTACHED, /* resume: attached to another connection */
	SESSION_SILENT,	  /* its runner has not answered this broker yet */
	SESSION_LIMIT,	  /* open, watch: a limit was reached */
	SESSION_FAILED,	  /* open, watch: the runner could not be reached */
};

struct control_session { /* the answer if there is no session */
	uint32_t conn;
	uint8_t result;	  /* enum session_result, except SESSION_OK */
	char reason[256]; /* LIMIT, FAILED: a text for the client */
	char host[CONTROL_HOST_TAG_MAX]; /* UNKNOWN: which host, or "" */
};

struct control_close {
	uint32_t conn;
	bool channel_ended; /* the runner closed the channel first */
};

/*
 * A client of its identity wants the session that the connection has: is the
 * connection's client still there? The answer comes within PROBE_MS
 * (liveness.h). If there is no sign of life, the connection is closed instead,
 * and CLOSE is the answer.
 */
#define PROBE_SILENT                                                           \
	"the session was resumed elsewhere: this client gave no sign of life"

struct control_probe {
	uint32_t conn;
	uint32_t number;
};

enum probe_result {
	PROBE_ALIVE,
	PROBE_HANDED_OVER, /* the runner has the client, and is to be asked */
};

struct control_probed {
	uint32_t conn;
	uint32_t number;
	uint8_t result; /* enum probe_result */
};

/* Why a session channel ended, as reported by the runner or the kernel. */
enum channel_end {
	CHANNEL_END_DETACHED, /* the connection was closed first */
	CHANNEL_END_PROTOCOL, /* the client broke the rules of the envelope */
	CHANNEL_END_REPLACED, /* the session was resumed elsewhere */
	CHANNEL_END_RUNNER,   /* the runner has ended */
	CHANNEL_END_ASKED, /* the runner has ended, because its client asked */
	CHANNEL_END_CRASHED, /* the runner has ended, by a fault of its own */
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

/* execd's programs, for control_metrics. */
enum program {
	PROGRAM_ROOT,
	PROGRAM_BROKER,
	PROGRAM_FRONTEND,
	PROGRAM_KEYS,
	PROGRAM_RUNNER,
	PROGRAMS
};

/* Upper bounds, in microseconds, of the buckets for the time that commands took
 * to start. A last bucket holds those that took longer. */
#define METRICS_BUCKETS                                                        \
	{                                                                      \
		1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000 \
	}
#define METRICS_NBUCKETS 10

#define METRICS_CAUSES_MAX 16 /* must be at least END_CAUSES */

/* What the sessions of an identity use. What is not known is 0. */
struct control_identity_usage {
	char name[CONTROL_IDENTITY_MAX];
	bool has_cpu, has_memory; /* known */
	uint64_t sessions;	  /* current number */
	uint64_t cpu_ms;	  /* also of sessions that have ended */
	uint64_t memory_bytes;
	uint64_t denials; /* credentials, sessions, sandboxes, networks */
};

/* Identities in one answer. All of them must fit into a message. */
#define METRICS_IDENTITIES_MAX 64

/* Reports a helper that hangs. The broker replaces it. */
struct control_helper {
	uint8_t kind; /* enum tls_helper */
};

/* The counters of the broker. Arrays are sent in the byte order of this
 * machine. */
struct control_metrics {
	uint32_t conn;
	uint8_t verdict; /* enum verdict; if not GRANTED, the rest is zero */
	uint64_t attached, detached, ending; /* current numbers of sessions */
	uint64_t kept;	    /* those of them that their clients asked to keep */
	uint64_t silent;    /* those whose runner does not answer */
	uint64_t processes; /* current number */
	uint64_t started;
	uint64_t exited[METRICS_CAUSES_MAX]; /* by enum end_cause */
	uint64_t denied; /* those that a sandbox probably stopped */
	/* connections of commands with a list of hosts */
	uint64_t network_allowed, network_denied;
	uint64_t output_bytes;		     /* of commands that have exited */
	uint64_t start_us[METRICS_NBUCKETS]; /* start times of `started` */
	uint64_t start_us_sum;
	uint64_t records, records_lost;
	bool record_failing;
	uint64_t audit_lag_ms; /* for so long the oldest record has waited */
	uint64_t log_lost;     /* lines of the broker's log */
	/* when the first one expires, in seconds since 1970; 0: none */
	uint64_t certificate_end, crl_end;
	uint64_t begun_s; /* when this broker began, since 1970 */
	bool drained;
	/* those that ended, and have a successor */
	uint64_t replaced_frontends, replaced_keys;
	uint64_t programs[PROGRAMS]; /* current numbers */
	/* resident memory of all of them together */
	uint64_t memory_bytes[PROGRAMS];
	uint32_t nidentities;
	struct control_identity_usage identities[METRICS_IDENTITIES_MAX];
	uint64_t identities_left_out;
};
