/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling on what clients may ask of a sandbox, and the settings
 * of every sandbox. The broker sends this to a runner.
 */
#pragma once

#include "base.h"

/* The size of a list, which has one item per line. */
#define SANDBOX_LIMITS_LIST_MAX	 2048
#define SANDBOX_LIMITS_HOSTS_MAX 4096 /* likewise, of a list of hosts */

/* The ABI that a sandbox of Landlock and seccomp alone needs, because it must
 * also control truncation. */
#define SANDBOX_LANDLOCK_ONLY_ABI 3

/* As many as there can be listeners. */
#define SANDBOX_OWN_PORTS_MAX 16

/* Connections of one command at once, unless the operator says otherwise, and
 * the most that he may say. */
#define SANDBOX_NETWORK_CONNECTIONS	256
#define SANDBOX_NETWORK_CONNECTIONS_MAX 65535

/* Each profile permits everything that those before it permit. */
enum sandbox_profile {
	SANDBOX_PROFILE_READ_ONLY,
	SANDBOX_PROFILE_WORKSPACE_WRITE, /* workspace roots, /tmp, TMPDIR */
	SANDBOX_PROFILE_MANAGED, /* any path that is named in the context */
	SANDBOX_PROFILE_FULL,	 /* the whole disk */
};

enum sandbox_unix { SANDBOX_UNIX_DENY, SANDBOX_UNIX_ALLOW };

/* Repositories in directories below a writable root. */
enum sandbox_nested {
	SANDBOX_NESTED_OFF,
	SANDBOX_NESTED_HOOKS, /* hooks and configuration stay read-only */
};

/* What a sandbox sees as /tmp or TMPDIR. */
enum sandbox_tmp {
	SANDBOX_TMP_HOST,
	SANDBOX_TMP_PRIVATE, /* its own; shared by one policy in a session */
	SANDBOX_TMP_REQUEST, /* TMPDIR only: from the request's environment */
};

/* Which variables of the session's environment a request may have. Each value
 * permits everything that those before it permit. */
enum sandbox_environment {
	SANDBOX_ENVIRONMENT_NONE,
	SANDBOX_ENVIRONMENT_CORE,
	SANDBOX_ENVIRONMENT_ALL,
};

#define SANDBOX_ORIGIN_MAX 160

/* The key and section that set each limit, as text. Empty: it was not set. */
struct sandbox_origins {
	char identity[64]; /* name of the identity */
	char unsandboxed[SANDBOX_ORIGIN_MAX];
	char external[SANDBOX_ORIGIN_MAX];
	char network[SANDBOX_ORIGIN_MAX];
	char write[SANDBOX_ORIGIN_MAX];
	char roots[SANDBOX_ORIGIN_MAX];
};

/* What a group above that of a command holds; 0: no limit. */
struct sandbox_group {
	uint64_t pids, memory_bytes;
};

struct sandbox_limits {
	/* what a client may ask for */
	uint8_t max_profile; /* enum sandbox_profile */
	bool unsandboxed;    /* no context, or type `disabled` */
	bool external;
	bool network;
	bool clamp; /* ask for too much: get less, instead of a refusal */
	bool accept_launch; /* accept SandboxLaunchConfig of older clients */
	/* what every sandbox gets */
	uint8_t nested_git; /* enum sandbox_nested */
	uint8_t nested_git_depth;
	uint8_t environment;  /* enum sandbox_environment */
	uint8_t tmp, tmpdir;  /* enum sandbox_tmp; for /tmp and for TMPDIR */
	uint8_t unix_sockets; /* enum sandbox_unix */
	bool allow_32bit, allow_setid, allow_nested_userns;
	uint8_t landlock_min_abi;
	bool landlock_only;  /* used where no user namespace can be made */
	bool require_groups; /* mode = require: control groups must exist */
	uint64_t shm_bytes;  /* 0: as the kernel has it, half of the memory */
	uint64_t open_files, file_bytes;
	/*
	 * What control groups hold; 0: no limit. First of each command, then of
	 * all sessions of its identity together, and of all of execd's.
	 */
	uint64_t pids, memory_bytes;
	uint32_t cpu_percent; /* of one processor */
	uint32_t cpu_weight, io_weight;
	uint8_t own; /* CGROUP_COUNTS_*: the identity set it, not [limits] */
	struct sandbox_group of_identity, of_all;
	/*
	 * A policy with a network gives the command the network of the host.
	 * If this is false, it gives the public addresses that the lists of
	 * hosts below permit.
	 */
	bool network_host;
	/*
	 * Commands with the network of the host do not reach own_ports, nor
	 * those of a reload. False where there can be none.
	 */
	bool guards_ports;
	bool
	    open_port; /* one of them may let in a command that shows nothing */
	uint16_t own_ports[SANDBOX_OWN_PORTS_MAX]; /* TCP; 0: none */
	uint32_t network_connections; /* of each command with a list, at once */
	uint64_t network_bytes;	      /* of each such command; 0: no limit */
	struct sandbox_origins origins; /* named in refusals */
	/* patterns that a client's roots must match, one per line; empty:
	 * any */
	char workspace_roots[SANDBOX_LIMITS_LIST_MAX];
	char writable_roots[SANDBOX_LIMITS_LIST_MAX];
	/* what every sandbox gets, one item per line */
	char deny_read[SANDBOX_LIMITS_LIST_MAX];
	char hide[SANDBOX_LIMITS_LIST_MAX];
	char protected_names[SANDBOX_LIMITS_LIST_MAX];
	/* patterns of hosts (network_rules.h), one per line: what any list of
	 * a client may open; empty: everything, and nothing */
	char network_allow[SANDBOX_LIMITS_HOSTS_MAX];
	char network_deny[SANDBOX_LIMITS_HOSTS_MAX];
};

/* Sets the defaults: everything may be asked for, as with the peer, until the
 * operator lowers it. With hide_secrets, no sandbox can read the credentials
 * for other machines. */
void sandbox_limits_default(struct sandbox_limits *l, bool hide_secrets);

/* Returns the smallest limit of a command's group and those above it; 0: none.
 * Its own group has this one, because programs that look how much they may take
 * see no other. */
struct sandbox_group sandbox_limits_smallest(const struct sandbox_limits *l);
