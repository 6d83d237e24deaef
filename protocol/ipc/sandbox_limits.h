/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling on what clients may ask of a sandbox, and what every
 * sandbox gets: what the broker tells a runner.
 */
#ifndef SANDBOX_LIMITS_H
#define SANDBOX_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

/* A list: one item a line. */
#define SANDBOX_LIMITS_LIST_MAX 2048

/* What a sandbox of Landlock and seccomp alone needs: truncation, too. */
#define SANDBOX_LANDLOCK_ONLY_ABI 3

/* Each permits what those before it do. */
enum sandbox_profile {
	SANDBOX_PROFILE_READ_ONLY,
	SANDBOX_PROFILE_WORKSPACE_WRITE, /* workspace roots, /tmp, TMPDIR */
	SANDBOX_PROFILE_MANAGED,	 /* any path that is named */
	SANDBOX_PROFILE_FULL,		 /* the whole disk */
};

enum sandbox_unix { SANDBOX_UNIX_DENY, SANDBOX_UNIX_ALLOW };

/* Repositories below a writable root. */
enum sandbox_nested {
	SANDBOX_NESTED_OFF,
	SANDBOX_NESTED_HOOKS, /* hooks and configuration stay */
};

/* What stands for a directory for temporary files. */
enum sandbox_tmp {
	SANDBOX_TMP_HOST,
	SANDBOX_TMP_PRIVATE, /* of its own, for all of one policy in a session
			      */
	SANDBOX_TMP_REQUEST, /* TMPDIR only: as the request's environment says
			      */
};

/* What a request may take of the session's environment; each permits what
 * those before it do. */
enum sandbox_environment {
	SANDBOX_ENVIRONMENT_NONE,
	SANDBOX_ENVIRONMENT_CORE,
	SANDBOX_ENVIRONMENT_ALL,
};

#define SANDBOX_ORIGIN_MAX 160

/* Which key of which section set a limit, in words; empty: none did. */
struct sandbox_origins {
	char identity[64]; /* whose limits these are */
	char unsandboxed[SANDBOX_ORIGIN_MAX];
	char external[SANDBOX_ORIGIN_MAX];
	char network[SANDBOX_ORIGIN_MAX];
	char write[SANDBOX_ORIGIN_MAX];
	char roots[SANDBOX_ORIGIN_MAX];
};

struct sandbox_limits {
	/* what may be asked */
	uint8_t max_profile; /* enum sandbox_profile */
	bool unsandboxed;    /* no context, or `disabled` */
	bool external;
	bool network;
	bool clamp;	    /* less is granted, not refused */
	bool accept_launch; /* SandboxLaunchConfig, of older clients */
	/* what every sandbox gets */
	uint8_t nested_git; /* enum sandbox_nested */
	uint8_t nested_git_depth;
	uint8_t environment;  /* enum sandbox_environment */
	uint8_t tmp, tmpdir;  /* enum sandbox_tmp; of /tmp and of TMPDIR */
	uint8_t unix_sockets; /* enum sandbox_unix */
	bool allow_32bit, allow_setid, allow_nested_userns;
	uint8_t landlock_min_abi;
	bool landlock_only;  /* where no user namespace can be made */
	bool require_groups; /* mode = require: control groups must be there */
	uint64_t shm_bytes, open_files, file_bytes;
	uint64_t pids, memory_bytes;	/* of each command; 0: no limit */
	uint32_t cpu_percent;		/* likewise; of one processor */
	struct sandbox_origins origins; /* what a refusal names */
	/* lines: what may be asked, patterns; empty: any */
	char workspace_roots[SANDBOX_LIMITS_LIST_MAX];
	char writable_roots[SANDBOX_LIMITS_LIST_MAX];
	/* what every sandbox gets */
	char deny_read[SANDBOX_LIMITS_LIST_MAX];
	char hide[SANDBOX_LIMITS_LIST_MAX];
	char protected_names[SANDBOX_LIMITS_LIST_MAX];
};

/* Everything may be asked, as on the peer; the operator lowers it. With
 * hide_secrets no sandbox reads what opens other machines. */
void sandbox_limits_default(struct sandbox_limits *l, bool hide_secrets);

#endif
