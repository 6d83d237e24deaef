/* SPDX-License-Identifier: ISC */
/*
 * Finds the sandbox that enforces a client's sandbox context, within what the
 * operator permits.
 */
#pragma once

#include "ceiling.h"
#include "network_list.h"
#include "sandbox.h"

#define SANDBOX_UNENFORCEABLE                                                  \
	"sandbox intent cannot be enforced on this executor"

/* What is decided about a request before there is a sandbox for it. */
struct sandbox_verdict {
	int err;		    /* of sandboxes_find() */
	char error[ARGS_ERROR_MAX]; /* likewise */
	bool direct;		    /* nothing must be enforced */
	unsigned clamped;	    /* as in struct sandboxes */
	struct plan plan;	    /* owned; not if direct */
};

struct sandboxes {
	struct sandbox_pool pool;
	const char *home;     /* the identity's */
	const char *tmpdir;   /* the session's TMPDIR; NULL: none */
	unsigned controllers; /* enum cgroup_controller: what groups limit */
	bool told;	  /* the log already mentions a limit without a group */
	bool single_user; /* execd is not root */
	char *lists;	  /* placeholders_path(); where root keeps them, NULL */
	bool plain;	  /* nothing is done without a policy */
	bool told_landlock_only;
	/*
	 * Patterns are not looked for here: sandboxes_find() returns
	 * -EINPROGRESS unless somebody has decided already (build.h).
	 */
	bool defers;
	struct sandbox_verdict *made; /* for the next request alone, or NULL */
	/* In who decides for another process: tells it, and does not return. */
	void (*tell)(const struct sandbox_verdict *v);
	bool required;	  /* the latest request demands every layer */
	unsigned clamped; /* 1 << enum ceiling_limit: cut down in it */
	/*
	 * The kernel has no Landlock to keep sockets out of the host's
	 * directories for temporary files, so that those are private.
	 */
	bool no_landlock;
	struct ceiling ceiling;
	/* what a policy with a network reaches; no text: the host's network */
	struct network_list everything;
};

/* What the sandboxes need to know of their session, which owns the strings. */
struct sandbox_host {
	struct event_base *base;
	int userns;		  /* the session's user namespace; -1: none */
	int program;		  /* descriptor of execd-files */
	bool parent_death_signal; /* no pid namespace would kill what remains */
	unsigned controllers;	  /* as in struct sandboxes */
	uint32_t cpu_s;		  /* program_limit_cpu() */
	int own_ports; /* for own_ports_take(); -1: none is guarded */
	const char *home, *tmpdir;
	char *const *homes; /* environment of the file helpers */
	/* Asks to end the file helper in a sandbox; false: still needed. */
	bool (*give_up)(void *owner, const struct sandbox *n);
	void (*on_replaced)(void *owner, const struct sandbox *n,
	    const char *path); /* see sandbox_pool */
	void *owner;
};

void sandboxes_init(struct sandboxes *sb, const struct sandbox_host *host,
    const struct sandbox_limits *limits);

/* Other limits are in force for later requests. */
void sandboxes_limit(struct sandboxes *sb, const struct sandbox_host *host,
    const struct sandbox_limits *limits);

/* What a request needs of a sandbox. */
struct sandbox_request {
	const struct sandbox_context *asked; /* NULL: it has no context */
	const char *cwd, *tmpdir; /* the command's; NULL: an fs/ method */
	bool reads;		  /* it only reads files or metadata */
	/* Instead of all of the network. The plan has it if it counts: if the
	 * operator permits a network at all. NULL: none. */
	const struct network_list *hosts;
};

/*
 * Finds the sandbox for a request. Returns 0 with *sandbox, which is NULL if
 * nothing must be enforced and which the pool owns otherwise; -EINPROGRESS if
 * sb->defers is set and a build (build.h) is needed; or another -errno,
 * usually -EINVAL, with the message of error -32602 in error[ARGS_ERROR_MAX],
 * which is also logged. The sandbox never enforces less than what is asked, and
 * never grants more than the operator permits.
 */
int sandboxes_find(struct sandboxes *sb, const struct sandbox_request *r,
    struct sandbox **sandbox, char *error);

/*
 * Writes the message of error -32602 to error[ARGS_ERROR_MAX]: a sandbox cannot
 * be enforced, and why. Returns -EINVAL.
 */
int sandboxes_refuse(const char *why, char *error);

/* Returns how many open files a sandboxed command may have. */
uint64_t sandboxes_open_files(const struct sandbox_limits *l);

/* Tells whether a request without a context may run unsandboxed. */
bool sandboxes_permit_none(const struct sandboxes *sb);

/* --- disk_view.c -------------------------------------------------------- */

/* The file system as the session's user sees it, for the resolver. */

extern const struct fs_view disk_view;
