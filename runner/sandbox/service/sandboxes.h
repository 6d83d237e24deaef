/* SPDX-License-Identifier: ISC */
/*
 * From a client's sandbox context to the sandbox that enforces it, under what
 * the operator permits.
 */
#ifndef SANDBOXES_H
#define SANDBOXES_H

#include "ceiling.h"
#include "sandbox.h"
#include "sandbox_context.h"

#define SANDBOX_UNENFORCEABLE                                                  \
	"sandbox intent cannot be enforced on this executor"

struct sandboxes {
	struct sandbox_pool pool;
	struct ceiling ceiling;
	const char *home;     /* of the identity */
	const char *tmpdir;   /* of the session's environment; NULL: none */
	unsigned controllers; /* enum cgroup_controller: limits of commands that
			       * a control group holds */
	bool told;	      /* of one that nothing holds */
	bool single_user;     /* execd is not root */
	bool told_landlock_only;
	/* Patterns are not looked for here: sandboxes_find() says -EINPROGRESS
	 * unless what they match is `known`. */
	bool defers;
	const struct resolve_matches *known;
	struct resolve_matches *found; /* of sandboxes_scan() */
	bool required;	  /* of the latest request: it must have every layer */
	unsigned clamped; /* enum ceiling_limit: of the latest request, what was
			   * cut down */
};

/* What a sandbox needs to know of its session. The strings are the session's.
 */
struct sandbox_host {
	struct event_base *base;
	int userns; /* a user namespace of the session's user; -1: none */
	bool parent_death_signal; /* no pid namespace would kill what is left */
	unsigned controllers;	  /* as in struct sandboxes */
	const char *home, *tmpdir;
	char *const *homes; /* of file helpers */
	/* The helper in a sandbox is not needed any more; false: it is. */
	bool (*give_up)(void *owner, const struct sandbox *n);
	const struct siphash_key *(*note)(void *owner,
	    const struct placeholder *placeholders,
	    size_t n); /* sandbox_pool */
	void *owner;
};

void sandboxes_init(struct sandboxes *sb, const struct sandbox_host *host,
    const struct sandbox_limits *limits);

/* What a request asks of the sandbox. */
struct sandbox_request {
	const struct sandbox_context *asked; /* NULL: it has no context */
	const char *cwd, *tmpdir; /* the command's; NULL: an fs/ method */
	bool reads; /* it reads files or metadata, and changes nothing */
};

/*
 * Finds the sandbox for a request. 0 with *sandbox, which is NULL when nothing
 * is to be enforced; or -EINVAL with the message of a -32602 in
 * error[ARGS_ERROR_MAX], which the log has then, too; or -EINPROGRESS, when
 * sb->defers and it takes a sandboxes_scan(). The sandbox never enforces less
 * than what is asked, and never grants more than the operator permits.
 */
int sandboxes_find(struct sandboxes *sb, const struct sandbox_request *r,
    struct sandbox **sandbox, char *error);

/* What the patterns of a request match, for sb->known of the same request. It
 * takes as long as the tree is large. */
void sandboxes_scan(struct sandboxes *sb, const struct sandbox_request *r,
    struct resolve_matches *found);

/* Writes the message of a -32602 into error[ARGS_ERROR_MAX]: a sandbox cannot
 * be enforced, and why. -EINVAL. */
int sandboxes_refuse(const char *why, char *error);

/* May a request without a context act as the user? */
bool sandboxes_permit_none(const struct sandboxes *sb);

#endif
