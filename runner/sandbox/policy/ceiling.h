/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling over a client's policy. What exceeds it is refused, or
 * cut down to it if the operator says so. Paths are compared by the device and
 * inode that they lead to, never as text.
 */
#pragma once

#include "path_set.h"
#include "sandbox_limits.h"

struct ceiling {
	/* NULL-terminated; each vector and its text are one owned block */
	const char **workspace_roots, **writable_roots;
	const char **deny_read, **hide, **protected_names;
	const char *home; /* for "~" */
	bool told; /* the log already mentions a policy that was cut down */
	/*
	 * Last, here and in what contains it: the long texts at its end are
	 * not used, and memory that nobody touches costs nothing.
	 */
	struct sandbox_limits limits;
};

void ceiling_init(
    struct ceiling *c, const struct sandbox_limits *limits, const char *home);
void ceiling_clear(struct ceiling *c); /* it may be all zero */

/* The limits that a request may exceed. */
enum ceiling_limit {
	CEILING_UNSANDBOXED,
	CEILING_EXTERNAL,
	CEILING_NETWORK,
	CEILING_WRITE,
	CEILING_ROOT,
	CEILING_CWD,
	CEILING_LIMITS, /* the number of limits */
};

const char *ceiling_word(enum ceiling_limit what);

/* The context that is granted, and what it points to. */
struct ceiling_grant {
	struct sandbox_context context;
	struct sandbox_entry fixed[4];
	struct path_uri root;
	struct paths workspace, at; /* where its roots and cwd led */
	struct path_uri *roots; /* owned: the permitted ones of the request */
	size_t nroots;
	unsigned clamped;	       /* mask of 1 << enum ceiling_limit */
	struct sandbox_entry *entries; /* owned; if it was narrowed */
	char **texts;		       /* owned */
	size_t ntexts;
};

/*
 * Judges a request before its policy is resolved.
 *
 * asked is NULL for a request without a context. Such a request is judged by
 * what it does: if it only reads files or metadata (`reads`), it needs no
 * permission for unsandboxed commands and gets what a read-only policy permits.
 * cwd is the command's, or NULL.
 *
 * Returns 0 with *grant, which shares what `asked` points to; or -EINVAL with
 * the message in error[ARGS_ERROR_MAX]. The caller calls ceiling_grant_clear()
 * in any case.
 */
int ceiling_judge(struct ceiling *c, const struct sandbox_context *asked,
    bool reads, const char *cwd, struct ceiling_grant *grant, char *error);
void ceiling_grant_clear(struct ceiling_grant *grant);

/* Tells whether the ceiling has paths that requests are compared with. */
bool ceiling_has_bounds(const struct ceiling *c);

/*
 * Judges what would be writable, after resolving. Returns 0, and the plan may
 * have become stricter; -EAGAIN if grant->context was cut down and must be
 * resolved again; -ESTALE if the cut-down context again makes the whole disk
 * writable; or -EINVAL with the message in error[ARGS_ERROR_MAX].
 */
int ceiling_judge_plan(struct ceiling *c, struct ceiling_grant *grant,
    const char *tmpdir, struct plan *plan, char *error);

/* Judges whether there is an http/request. Returns 0, or -EINVAL with the
 * message. */
int ceiling_judge_network(const struct ceiling *c, char *error);

/* Tells whether an http/request reaches only what the operator's lists let a
 * policy with a network reach. */
bool ceiling_holds_requests(const struct ceiling *c);

/*
 * Judges a connection to the host's loopback, which takes an unsandboxed
 * command. Returns 0, or -EINVAL with the message.
 */
int ceiling_judge_loopback(const struct ceiling *c, char *error);
