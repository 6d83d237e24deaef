/*
 * From a client's sandbox context to the nest that enforces it, under what
 * the operator permits.
 */
#ifndef SANDBOXES_H
#define SANDBOXES_H

#include "ceiling.h"
#include "sandbox.h"
#include "sandbox_context.h"

#define SANDBOX_UNENFORCEABLE                                                  \
	"sandbox intent cannot be enforced on this executor"

struct sandbox {
	struct nest_pool pool;
	struct ceiling ceiling;
	const char *home;     /* of the identity */
	const char *tmpdir;   /* of the session's environment; NULL: none */
	unsigned controllers; /* enum cgroup_controller: limits of commands that
			       * a control group holds */
	bool told;	      /* of one that nothing holds */
	bool single_user;     /* execd is not root */
	bool told_landlock_only;
	/* Patterns are not looked for here: sandbox_find() says -EINPROGRESS
	 * unless what they match is `known`. */
	bool defers;
	const struct resolve_matches *known;
	struct resolve_matches *found; /* of sandbox_scan() */
	bool required;	  /* of the latest request: it must have every layer */
	unsigned clamped; /* enum ceiling_limit: of the latest request, what was
			   * cut down */
};

/* What a sandbox needs to know of its session. The strings are the session's.
 */
struct sandbox_host {
	struct event_base *base;
	int door; /* a user namespace of the session's user; -1: none */
	bool parent_death_signal; /* no pid namespace would kill what is left */
	unsigned controllers;	  /* as in struct sandbox */
	const char *home, *tmpdir;
	char *const *homes; /* of file helpers */
	/* The helper in a nest is not needed any more; false: it is. */
	bool (*give_up)(void *owner, const struct nest *n);
	const struct siphash_key *(*note)(
	    void *owner, const struct mask *masks, size_t n); /* nest_pool */
	void *owner;
};

void sandbox_init(struct sandbox *sb, const struct sandbox_host *host,
    const struct sandbox_limits *limits);

/* What a request asks of the sandbox. */
struct sandbox_request {
	const struct sandbox_context *asked; /* NULL: it has no context */
	const char *cwd, *tmpdir; /* the command's; NULL: an fs/ method */
	bool reads; /* it reads files or metadata, and changes nothing */
};

/*
 * Finds the nest for a request. 0 with *nest, which is NULL when nothing is to
 * be enforced; or -EINVAL with the message of a -32602 in
 * error[ARGS_ERROR_MAX], which the log has then, too; or -EINPROGRESS, when
 * sb->defers and it takes a sandbox_scan(). The nest never enforces less than
 * what is asked, and never grants more than the operator permits.
 */
int sandbox_find(struct sandbox *sb, const struct sandbox_request *r,
    struct nest **nest, char *error);

/* What the patterns of a request match, for sb->known of the same request. It
 * takes as long as the tree is large. */
void sandbox_scan(struct sandbox *sb, const struct sandbox_request *r,
    struct resolve_matches *found);

/* Writes the message of a -32602 into error[ARGS_ERROR_MAX]: a sandbox cannot
 * be enforced, and why. -EINVAL. */
int sandbox_refuse(const char *why, char *error);

/* May a request without a context act as the user? */
bool sandbox_permits_none(const struct sandbox *sb);

#endif
