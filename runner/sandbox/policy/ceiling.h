/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling over a client's policy. What exceeds it is refused, or
 * cut down to it where the operator says so. Paths are compared by device and
 * inode of what they lead to, never as text.
 */
#ifndef CEILING_H
#define CEILING_H

#include "path_set.h"
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

/* What a request may exceed. */
enum ceiling_limit {
	CEILING_UNSANDBOXED,
	CEILING_EXTERNAL,
	CEILING_NETWORK,
	CEILING_WRITE,
	CEILING_ROOT,
	CEILING_CWD,
	CEILING_LIMITS, /* how many there are */
};

const char *ceiling_word(enum ceiling_limit what);

/* A context of what is granted, and what it points to. */
struct ceiling_grant {
	struct sandbox_context context;
	struct sandbox_entry fixed[4];
	struct path_uri root;
	struct paths workspace, at; /* what its roots and cwd led to */
	struct path_uri *roots;	    /* owned; those of the request */
	size_t nroots;
	unsigned clamped;	       /* bits: enum ceiling_limit */
	struct sandbox_entry *entries; /* owned, when it was narrowed */
	char **texts;		       /* owned */
	size_t ntexts;
};

/*
 * Judges a request before its policy is resolved. asked: NULL for a request
 * without a context, which is judged by what it does: one that only reads files
 * or metadata needs no permission for unsandboxed commands, and gets what a
 * read-only policy permits. cwd: of a command, else NULL. 0 with *grant, which
 * shares what `asked` points to; or -EINVAL with the message in
 * error[ARGS_ERROR_MAX]. ceiling_grant_clear() in any case.
 */
int ceiling_judge(struct ceiling *c, const struct sandbox_context *asked,
    bool reads, const char *cwd, struct ceiling_grant *grant, char *error);
void ceiling_grant_clear(struct ceiling_grant *grant);

/* After resolving: what would be writable. 0, perhaps with less in the plan;
 * -EAGAIN, and grant->context is to be resolved anew, as it was cut down; or
 * -EINVAL likewise. */
int ceiling_judge_plan(struct ceiling *c, struct ceiling_grant *grant,
    const char *tmpdir, struct plan *plan, char *error);

/* http/request: 0 or -EINVAL likewise. */
int ceiling_judge_network(const struct ceiling *c, char *error);

/* Less than was asked: said once in the log, noted in the grant, and 0; or
 * refused, -EINVAL likewise. */
int ceiling_exceed(struct ceiling *c, enum ceiling_limit what, const char *path,
    struct ceiling_grant *grant, char *error);

#endif
