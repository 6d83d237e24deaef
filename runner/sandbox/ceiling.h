/*
 * The operator's ceiling over a client's policy: refused with the words of
 * SANDBOX.md part E, or cut down to it where the operator says so. Paths are
 * compared by device and inode of what they lead to, never as text.
 */
#ifndef CEILING_H
#define CEILING_H

#include "resolve.h"
#include "sandbox_limits.h"

struct ceiling {
	struct sandbox_limits limits;
	/* NULL-terminated; owned: the vector, and one block of text */
	const char **workspace_roots, **writable_roots;
	const char **deny_read, **hide, **protected_names;
	const char *home; /* for "~" */
	bool told;	  /* of a policy that was cut down */
};

void ceiling_init(
    struct ceiling *c, const struct sandbox_limits *limits, const char *home);

/* A context of what is granted, and what it points to. */
struct ceiling_grant {
	struct sandbox_context context;
	struct sandbox_entry entries[4];
	struct path_uri root;
};

/*
 * Before resolving. asked: NULL for a request without a context; cwd: of a
 * command, else NULL. 0 with *grant, which shares what `asked` points to; or
 * -EINVAL with the message in error[ARGS_ERROR_MAX].
 */
int ceiling_judge(struct ceiling *c, const struct sandbox_context *asked,
    const char *cwd, struct ceiling_grant *grant, char *error);

/* After resolving: what would be writable. 0, perhaps with less in the plan;
 * or -EINVAL likewise. */
int ceiling_judge_plan(struct ceiling *c, const struct sandbox_context *granted,
    const char *tmpdir, struct plan *plan, char *error);

/* http/request: 0 or -EINVAL likewise. */
int ceiling_judge_network(const struct ceiling *c, char *error);

#endif
