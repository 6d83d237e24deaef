/* SPDX-License-Identifier: ISC */
/*
 * The client's portable sandbox intent, decoded and validated (doc/sandbox.md
 * sections A3 to A7). Pure: binds nothing, looks at no disk. Memory comes
 * from the message.
 */
#ifndef SANDBOX_CONTEXT_H
#define SANDBOX_CONTEXT_H

#include "args.h"

/* Entries, roots and directories a context may list. */
#define SANDBOX_LIST_MAX 10000

enum sandbox_type { SANDBOX_MANAGED, SANDBOX_DISABLED, SANDBOX_EXTERNAL };

enum sandbox_access { SANDBOX_READ, SANDBOX_WRITE, SANDBOX_DENY };

enum sandbox_path_kind {
	SANDBOX_PATH,	 /* path */
	SANDBOX_GLOB,	 /* text: the pattern */
	SANDBOX_SPECIAL, /* special, text: the subpath */
};

enum sandbox_special {
	SANDBOX_ROOT,
	SANDBOX_MINIMAL,
	SANDBOX_CURRENT_WORKING_DIRECTORY, /* the same as the next */
	SANDBOX_PROJECT_ROOTS,
	SANDBOX_TMPDIR,
	SANDBOX_SLASH_TMP,
	SANDBOX_UNKNOWN,
};

struct sandbox_entry {
	enum sandbox_access access;
	enum sandbox_path_kind kind;
	enum sandbox_special special;
	struct path_uri path;
	struct slice text; /* holds no NUL */
};

struct sandbox_context {
	enum sandbox_type type;
	bool network_enabled;	 /* DISABLED: always */
	bool files_unrestricted; /* no entry restricts files */
	bool unrestricted;	 /* nothing at all is asked to be enforced */
	struct sandbox_entry *entries;
	size_t nentries;
	uint64_t glob_scan_max_depth; /* 0: not given */
	bool has_cwd;
	struct path_uri cwd;	/* of policyContext, else the outer one */
	struct path_uri *roots; /* likewise */
	size_t nroots;
	bool has_home;
	struct path_uri home;
	/* of a launch configuration */
	bool managed_network; /* asked for */
	bool required;	      /* every layer, or nothing runs */
};

/* For this process: a SandboxLaunchConfig is accepted where a context is
 * expected (section A8). Not at the start. */
void sandbox_context_accept_launch(bool accept);

/* Decodes v into *out; errors are a's, in the peer's words (section A9), and
 * then *out is the strictest context there is. A path or root may be foreign:
 * it names nothing here. */
void sandbox_context_decode(
    struct args *a, const struct json_value *v, struct sandbox_context *out);

/* What a command asks of its context beyond its shape: a policy cwd of this
 * machine. 0, or -EBADMSG with the text of A9 in error[ARGS_ERROR_MAX]. */
int sandbox_context_check_cwd(const struct sandbox_context *c, char *error);

/*
 * Pieces for the older shapes (sandbox_legacy.c); errors are a's.
 */

/* A member that is a list of at most max items. NULL: absent, or an error. */
const struct json_value *sandbox_list(
    struct args *a, const char *key, bool required, size_t max);

/* The members `entries` and `glob_scan_max_depth` of a's object. older: the
 * list may be absent, its paths plain. */
void sandbox_entries_decode(
    struct args *a, struct sandbox_context *c, bool older);

/* A plain absolute path, dot segments removed. `what` it is, for the error. */
struct path_uri sandbox_plain_path(
    struct args *a, const char *what, struct slice text);

/* Checks windowsSandboxLevel and useLegacyLandlock, which change nothing. */
void sandbox_windows_check(struct args *a, bool required);

#endif
