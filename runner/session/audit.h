/* SPDX-License-Identifier: ISC */
/*
 * What the session does, told to the broker for its audit log and its
 * counters, if it wants to know: commands when they run and when they have
 * ended, operations on files and HTTP requests before they are carried out.
 * Secrets are taken out here (redact.h).
 *
 * Nothing is lost on the way: a report waits until the broker takes it, and
 * what is asked waits with it. Where a record is required and none can be
 * written, what would have to be recorded is refused.
 */
#ifndef AUDIT_H
#define AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "redact.h"

struct fs_params;
struct http_request_params;
struct request;
struct rpc_method;
struct session;
struct session_process;

struct record {
	struct control_audit order;
	struct redact_rules rules; /* of its texts */
	bool fails;		   /* nothing can be written down */
};

/* From now on; once. */
void audit_begin(struct session *s, const struct control_audit *order);

/* False: what must be recorded cannot be; the request was answered so. */
bool audit_permits(struct request *r);

/* argv as a shell would read it, without its secrets, as far as it fits into
 * text[CONTROL_COMMAND_MAX]. Returns how many secrets were found. */
unsigned audit_command(
    const struct session *s, char *const argv[], char *text, bool *cut);

/* For audit_started(); 0 when nobody asks. */
int64_t audit_clock_us(const struct session *s);

/* A command runs; it was asked for at began_us. */
void audit_started(const struct session_process *p, char *const argv[],
    const char *cwd, int64_t began_us);

/* Its start could not be recorded: it ends, and its client hears why. */
void audit_end_unrecorded(struct session *s, const char *process);

/* It ended by itself or was killed. */
void audit_exited(struct session_process *p);

/* It is about to be carried out, sandboxed or not. False: as
 * audit_permits(). */
bool audit_file(struct request *r, const struct rpc_method *method,
    const struct fs_params *p, bool sandboxed);
bool audit_http(struct request *r, const struct http_request_params *p);

/* Are operations on files recorded at all? */
bool audit_wants_files(const struct session *s);

#endif
