/*
 * From a client's sandbox context to the nest that enforces it, under what
 * the operator permits.
 */
#ifndef SANDBOX_H
#define SANDBOX_H

#include "nest.h"
#include "sandbox_context.h"

#define SANDBOX_UNENFORCEABLE                                                  \
	"sandbox intent cannot be enforced on this executor"

struct sandbox {
	struct nest_pool pool;
	const char *home;   /* of the identity */
	const char *tmpdir; /* of the session's environment; NULL: none */
};

/* options: what the host makes of them; the rest is filled in here. door: a
 * user namespace of the session's user, taken over; -1: none. The strings are
 * the session's. */
void sandbox_init(struct sandbox *sb, int door,
    const struct nest_options *options, const char *home, const char *tmpdir,
    bool (*give_up)(void *owner, const struct nest *n), void *owner);

/*
 * The nest for a context. cwd is the command's; NULL for fs/ methods. 0 with
 * *nest, NULL when nothing is asked to be enforced; or -EINVAL with the
 * message of a -32602 in error[ARGS_ERROR_MAX]. Never less than what is asked.
 */
int sandbox_find(struct sandbox *sb, const struct sandbox_context *c,
    const char *cwd, struct nest **nest, char *error);

#endif
