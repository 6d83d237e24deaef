/* SPDX-License-Identifier: ISC */
/*
 * What was asked of a sandbox and what is in force, for the client
 * (execd-protocol(7), "process/start").
 */
#ifndef SANDBOX_REPORT_H
#define SANDBOX_REPORT_H

#include "json.h"
#include "sandboxes.h"

struct sandbox_report {
	bool asked; /* there was a context */
	enum sandbox_type asked_type;
	bool asked_files, asked_network; /* to be restricted */
	unsigned clamped;		 /* enum ceiling_limit: cut down */
	bool enforced;			 /* anything below is in force */
	bool files, network;		 /* restricted */
	bool proc;
	unsigned controllers;  /* enum cgroup_controller; 0: no groups */
	unsigned landlock_abi; /* 0: none */
	bool landlock_only;    /* no namespaces, and no view */
	uint64_t pids, memory_bytes, open_files, file_bytes;
	uint32_t cpu_percent;
};

/* asked: NULL for none; sandbox: NULL for none. */
void sandbox_report_fill(struct sandbox_report *r, const struct sandboxes *sb,
    const struct sandbox_context *asked, const struct sandbox *sandbox);

/* A member "sandbox" of the object being written; nothing when there was no
 * context and nothing is enforced. */
void sandbox_report_write(
    struct json_writer *w, const struct sandbox_report *r);

#endif
