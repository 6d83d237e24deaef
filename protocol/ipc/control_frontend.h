/* SPDX-License-Identifier: ISC */
/*
 * What the front-end and the broker tell each other: MON_* of control.h.
 */
#ifndef CONTROL_FRONTEND_H
#define CONTROL_FRONTEND_H

#include <stdbool.h>
#include <stdint.h>

#include "control_helper.h"
#include "control_limits.h"

#define CONTROL_LISTENERS_MAX 16
#define CONTROL_TRUSTED_MAX   64 /* certificates, or lists, in one file */
#define CONTROL_NETS_MAX      16
#define CONTROL_NET_BYTES     17 /* IPv6 address, then bits of its prefix */

enum listener_kind {
	LISTENER_WS,	/* a listening stream socket */
	LISTENER_STDIO, /* two descriptors: input, output */
	LISTENER_UNIX,	/* a listening AF_UNIX socket, WebSocket over it */
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
	uint32_t listeners; /* so many BROKER_EV_LISTENER follow */
};

/* Why no new session is opened. */
enum drain_reason {
	DRAIN_NONE, /* they are */
	DRAIN_OPERATOR,
	DRAIN_STOPPING,
};

struct control_drain {
	uint8_t why; /* enum drain_reason */
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
	uint32_t id; /* the broker's number, never reused for another */
	uint8_t kind;
	bool tls;
	bool operate;		    /* answers /healthz and /metrics */
	bool hand_over;		    /* clients go to their runners */
	uint8_t client_certificate; /* enum client_certificate */
	uint32_t key;		    /* `tls`: number in the key process */
};

#define CONTROL_LISTENER_FDS_MAX 3

/* What the front-end could confine itself with; the broker logs the rest. */
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

struct control_authenticate {
	uint32_t conn;	      /* the front-end's number, never reused */
	uint32_t listener;    /* control_listener.id */
	uint8_t kind;	      /* enum credential_kind */
	bool has_certificate; /* `verdict` is of it */
	struct control_cert_verdict cert_verdict;
	char peer[CONTROL_PEER_MAX]; /* for messages: "websocket IP:PORT" */
	char credential[CONTROL_CREDENTIAL_MAX];
};

/* A client certificate, or that there was none: in TLS, before any request. */
struct control_refused {
	uint32_t listener;
	char peer[CONTROL_PEER_MAX];
	char reason[CONTROL_SUBJECT_MAX + 128];
};

/* Rows of doc/protocol.md section 1.5. */
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
	VERDICT_SUBJECT,  /* a good signed token, of nobody's subject: 401 */
};
#define VERDICTS (VERDICT_SUBJECT + 1)

struct control_verdict {
	uint32_t conn;
	uint8_t verdict;
	uint8_t grant[CONTROL_GRANT_BYTES]; /* zero unless GRANTED */
};

struct control_open {
	uint32_t conn;
	uint8_t grant[CONTROL_GRANT_BYTES];
};

struct control_resume { /* also of BROKER_REQ_WATCH */
	uint32_t conn;
	uint8_t grant[CONTROL_GRANT_BYTES];
	char session_id[CONTROL_SESSION_ID_MAX];
};

enum session_result {
	SESSION_OK,	  /* not answered: its runner does */
	SESSION_UNKNOWN,  /* resume: no such session for this identity */
	SESSION_ATTACHED, /* resume: another connection has it */
	SESSION_LIMIT,	  /* open, watch: a limit */
	SESSION_FAILED,	  /* open, watch: the runner could not be reached */
};

struct control_session { /* there is none */
	uint32_t conn;
	uint8_t result;	  /* enum session_result, but SESSION_OK */
	char reason[256]; /* LIMIT, FAILED: a sentence */
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

/* execd's programs, for control_metrics. */
enum program {
	PROGRAM_ROOT,
	PROGRAM_BROKER,
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

/* A helper that hangs is replaced. */
struct control_helper {
	uint8_t kind; /* enum tls_helper */
};

struct control_ask_metrics {
	uint32_t conn;
};

/* What the broker counts. The arrays are of this machine. */
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
	/* when the first expires, in seconds since 1970; 0: there is none */
	uint64_t certificate_end, crl_end;
	uint64_t programs[PROGRAMS];	 /* now */
	uint64_t memory_bytes[PROGRAMS]; /* resident, of all of them */
};

#endif
