/* SPDX-License-Identifier: ISC */
/*
 * Decodes and validates the context, a client's portable description of its
 * sandbox (doc/sandbox.md sections A3 to A7). Nothing here looks at the disk.
 * Memory comes from the message.
 */
#pragma once

#include "args.h"

/* The most entries, roots or directories in one list of a context. */
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
	SANDBOX_CURRENT_WORKING_DIRECTORY, /* means the same as PROJECT_ROOTS */
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
	struct slice text; /* contains no NUL */
};

struct sandbox_context {
	enum sandbox_type type;
	bool network_enabled;	 /* always true for DISABLED */
	bool files_unrestricted; /* no entry restricts files */
	bool unrestricted; /* the context asks for no restriction at all */
	struct sandbox_entry *entries;
	size_t nentries;
	uint64_t glob_scan_max_depth; /* 0: not given */
	bool has_cwd;
	struct path_uri cwd;	/* from policyContext, else from the context */
	struct path_uri *roots; /* the same */
	size_t nroots;
	bool has_home;
	struct path_uri home;
	/* from a launch configuration: */
	bool managed_network; /* a managed network is asked for */
	bool required;	      /* run nothing unless every layer works */
	bool mxc;	      /* a sandbox that only Windows has is asked for */
};

/* Sets whether this process accepts a SandboxLaunchConfig in place of a context
 * (section A8). At the start it does not. */
void sandbox_context_accept_launch(bool accept);

/* Decodes v into *out. Errors are reported in `a`, in the words of the peer
 * (section A9); *out is then the strictest context. A path or root may be
 * foreign, that is, name nothing on this machine. */
void sandbox_context_decode(
    struct args *a, const struct json_value *v, struct sandbox_context *out);

/*
 * Decodes the permission profile of the runner's frames, version 6, with plain
 * absolute paths. A profile that is not managed is an error. roots holds
 * strings. Returns 0, or -EBADMSG with a message in error[ARGS_ERROR_MAX]; *out
 * is then the strictest context.
 */
int sandbox_profile_decode(struct json_doc *doc,
    const struct json_value *profile, const char *cwd,
    const struct json_value *roots, struct sandbox_context *out, char *error);

/* Checks what a command needs of its context beyond its form: the policy cwd
 * must be a path of this machine. Returns 0, or -EBADMSG with the text of
 * section A9 in error[ARGS_ERROR_MAX]. */
int sandbox_context_check_cwd(const struct sandbox_context *c, char *error);

/*
 * Parts that sandbox_legacy.c uses for the older forms. Errors are reported in
 * `a`.
 */

/* Returns a member that is a list of at most max items, or NULL if it is absent
 * or wrong. */
const struct json_value *sandbox_list(
    struct args *a, const char *key, bool required, size_t max);

/* Decodes the members `entries` and `glob_scan_max_depth` of the object in `a`.
 * With `older`, the list may be absent and its paths may be plain. */
void sandbox_entries_decode(
    struct args *a, struct sandbox_context *c, bool older);

/* Parses a plain absolute path and removes dot segments. `what` names it in
 * errors. */
struct path_uri sandbox_plain_path(
    struct args *a, const char *what, struct slice text);

/* Checks windowsSandboxLevel and useLegacyLandlock, which change nothing of
 * what is enforced here. Returns whether the level is `mxc`. */
bool sandbox_windows_check(struct args *a, bool required);
