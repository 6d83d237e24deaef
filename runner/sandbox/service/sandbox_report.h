/* SPDX-License-Identifier: ISC */
/*
 * Reports to the client what it asked of a sandbox and what is in force
 * (execd-protocol(7), "process/start").
 */
#pragma once

#include "control_runner.h"
#include "json.h"
#include "sandboxes.h"

struct sandbox_report {
	bool asked; /* the request had a context */
	enum sandbox_type asked_type;
	bool asked_files, asked_network; /* the client asked to restrict them */
	unsigned clamped;    /* mask of 1 << enum ceiling_limit: cut down */
	bool enforced;	     /* anything below is in force */
	bool files, network; /* they are restricted */
	bool listed;	     /* the network is a list of hosts */
	bool proc;
	unsigned controllers; /* mask of enum cgroup_controller; 0: no groups */
	unsigned landlock_abi; /* 0: none */
	bool landlock_only;    /* no namespaces and no view */
	bool loopback;	       /* a network namespace of its own */
	bool names; /* a resolver leads programs that know no proxy to hosts */
	bool open;  /* every public address, within the operator's lists */
	const char *unix_sockets; /* which the command may connect to */
	char *cwd; /* owned: in place of what the policy hides; or NULL */
	uint64_t pids, memory_bytes, open_files, file_bytes;
	uint64_t shm_bytes; /* of its own /dev/shm */
	uint32_t cpu_percent;
};

/* Fills *r. asked and sandbox may be NULL for none. */
void sandbox_report_fill(struct sandbox_report *r, const struct sandboxes *sb,
    const struct sandbox_context *asked, const struct sandbox *sandbox);

/* Returns what the command may reach. */
enum control_reach sandbox_report_reach(const struct sandbox_report *r);

/*
 * Writes a member "sandbox" of the current object. Writes nothing if there was
 * no context and nothing is enforced.
 */
void sandbox_report_write(
    struct json_writer *w, const struct sandbox_report *r);
