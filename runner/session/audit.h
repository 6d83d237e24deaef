/* SPDX-License-Identifier: ISC */
/*
 * Reports what the session does to the broker, for its audit log and its
 * counters, if the broker asks for it. A command is reported when it runs and
 * when it has ended; an operation on a file and an HTTP request are reported
 * before they are carried out. Secrets are removed here (redact.h).
 *
 * No report is lost: the runner waits until the broker takes it, and the
 * request waits with it. Where a record is required and cannot be written, the
 * request is refused.
 */
#pragma once

#include "base.h"
#include "rate.h"
#include "redact.h"

struct fs_params;
struct netproxy_decided;
struct http_request_params;
struct request;
struct rpc_method;
struct session;
struct session_process;

/* The decisions that are on record already, of one command or of the session's
 * requests. The same decision is only counted then. */
#define NETWORK_RECORDED_MAX 256
struct network_recorded {
	uint64_t hashes[NETWORK_RECORDED_MAX]; /* of the latest decisions */
	unsigned n;
};

struct record {
	struct control_audit wanted;
	struct redact_rules rules; /* for secrets in texts */
	bool fails; /* records are required and cannot be written */
	struct rate network_rate; /* of decisions about networks */
	uint32_t network_unrecorded;
	struct network_recorded requests; /* of http/request */
};

/* Starts reporting; called once. wanted is copied. */
void audit_begin(struct session *s, const struct control_audit *wanted);

/*
 * Returns false if a record is required and cannot be written; then the request
 * was answered with an error.
 */
bool audit_permits(struct request *r);

/*
 * Writes argv as a shell would read it into text[CONTROL_COMMAND_MAX], without
 * secrets, as far as it fits. *cut is set if it did not fit. Returns the number
 * of secrets found.
 */
unsigned audit_command(
    const struct session *s, char *const argv[], char *text, bool *cut);

/* Reports that a command runs. It was requested at began_us
 * (now_us()). Call it only if
 * reports are wanted: s->record. */
void audit_started(const struct session_process *p, char *const argv[],
    const char *cwd, int64_t began_us);

/*
 * Ends a command whose start could not be recorded, and tells the client why.
 * process is its id.
 */
void audit_end_unrecorded(struct session *s, const char *process);

/* Reports that a command has ended, by itself or killed. */
void audit_exited(struct session_process *p);

/* Reports what a limit did to a command; `limit` is what its reader was told.
 */
void audit_limited(const struct session_process *p, const char *limit);

/*
 * Reports a decision about the network of a command. The broker counts it, and
 * records those that this command had not had yet.
 */
void audit_network(
    const struct session_process *p, const struct netproxy_decided *d);

/* Likewise for one about an http/request of the session. */
void audit_request_network(struct session *s, const struct netproxy_decided *d);

/*
 * Report a request that is about to be carried out, in a sandbox or not. They
 * return false as audit_permits() does.
 */
bool audit_file(struct request *r, const struct rpc_method *method,
    const struct fs_params *p, bool sandboxed);
bool audit_http(struct request *r, const struct http_request_params *p);

/* Tells whether operations on files are recorded at all. */
bool audit_wants_files(const struct session *s);
