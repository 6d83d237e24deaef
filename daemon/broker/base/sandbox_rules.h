/* SPDX-License-Identifier: ISC */
/*
 * The operator's rules about sandboxes: [sandbox] of execd.conf(5), and the
 * sandbox- keys of an identity, which come before it.
 */
#pragma once

#include <stdbool.h>

#include "conf_value.h"
#include "sandbox_limits.h"

struct sandbox_rules {
	uint8_t mode;	     /* 1: require */
	uint8_t max_profile; /* enum sandbox_profile */
	uint8_t unsandboxed, external, network;
	uint8_t accept_launch;
	uint8_t over_limit;   /* 1: clamp */
	uint8_t unix_sockets; /* enum sandbox_unix */
	uint8_t nested_git;   /* enum sandbox_nested */
	uint8_t environment;  /* enum sandbox_environment */
	uint8_t tmp, tmpdir;  /* enum sandbox_tmp */
	uint8_t allow_32bit, allow_setid, allow_nested_userns;
	uint8_t landlock_only;
	uint8_t network_host;
	uint32_t landlock_min_abi, nested_git_depth;
	uint32_t open_files;
	uint64_t file_bytes, shm_bytes;
	uint32_t network_connections;
	uint64_t network_bytes;
	struct strings workspace_roots, writable_roots, deny_read, hide;
	struct strings protected_names;
	struct strings network_allow, network_deny; /* patterns of hosts */
};

extern const struct conf_type sandbox_mode, sandbox_profile, sandbox_over_limit,
    sandbox_unix_sockets, sandbox_nested_git, sandbox_environment, sandbox_tmp,
    sandbox_tmpdir, sandbox_small, sandbox_connections, sandbox_allowed_hosts,
    sandbox_denied_hosts;

/* Makes everything unset. */
void sandbox_rules_init(struct sandbox_rules *r);
void sandbox_rules_clear(struct sandbox_rules *r);

/* Returns 0, or -EINVAL with why if a value does not fit into the message to a
 * runner. */
int sandbox_rules_check(const struct sandbox_rules *r, char *why);

/* Tells whether a list was given that is not `none`. */
bool sandbox_rules_list_any(const struct strings *list);

/* Tells whether network-allow or network-deny lists a host. */
bool sandbox_rules_list_hosts(const struct sandbox_rules *r);

/* Replaces values of *l by those that are set. */
void sandbox_rules_apply(
    const struct sandbox_rules *r, struct sandbox_limits *l);

/* Replaces values that are unset by those of *l. */
void sandbox_rules_fill(
    struct sandbox_rules *r, const struct sandbox_limits *l);

/* Returns the word for a profile in execd.conf(5). */
const char *sandbox_profile_name(enum sandbox_profile profile);
