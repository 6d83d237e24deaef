/* SPDX-License-Identifier: ISC */
/*
 * Identities: as which user a session's commands run. This is [identity NAME]
 * of execd.conf(5), and everything that the C library knows about the user. It
 * is looked up once, before the first client.
 */
#pragma once

#include "base.h"
#include "group_limits.h"
#include "path_map.h"
#include "queue.h"
#include "sandbox_rules.h"
#include "watch.h"

struct identity_limits {
	uint32_t max_sessions; /* at once; 0: no limit of its own */
	uint32_t session_deadline_ms;
	uint32_t max_detached_ttl_ms; /* that its clients may ask for */
	uint32_t command_deadline_ms; /* 0: none */
	uint64_t output_rate;	      /* bytes a second; 0: no limit */
	struct group_limits together; /* of all its sessions */
	struct group_limits command;  /* of each command */
	unsigned command_own; /* group_limits_set(): not those of [limits] */
	/* of every process (setrlimit(2)); 0: as execd itself has it */
	uint32_t max_open_files;
	uint32_t max_cpu_ms;
	uint64_t max_address_bytes;
	uint64_t max_file_bytes;
};

/* The most bytes of one recording, unless the operator sets another limit. */
#define RECORD_MAX_BYTES (64u << 20)

/* Recordings of terminals. */
struct record_rules {
	char *directory;    /* NULL: none */
	uint32_t number;    /* its number in root's list */
	bool input;	    /* what is typed is recorded, too */
	bool required;	    /* a command that cannot be recorded does not run */
	uint64_t max_bytes; /* of each recording */
};

/* What its sessions use; stats.c. */
struct identity_usage {
	bool ever;	       /* it has or had sessions */
	uint64_t ended_cpu_ms; /* of sessions that have ended */
	uint64_t denials;      /* stats.h */
	bool cpu_lost;	       /* nothing was known of one of them */
	/* of the latest answer; has_...: known of every session */
	bool has_cpu, has_memory;
	uint64_t sessions, cpu_ms, memory_bytes;
};

/* The account of its user, as account.c found it last. */
struct account {
	struct event channel, timer; /* of the program that asks */
	pid_t program;
	bool asking;
	int64_t asked_ms; /* when; 0: never */
	uint64_t stamp;	  /* of the local accounts then */
	char why[128];	  /* why the user gets no session; "": he does */
};

/* The uid of a user who is gone (identity_resolve()). */
#define IDENTITY_GONE ((uid_t)-1)

struct identity {
	char *name;    /* of the section, or the user's */
	unsigned refs; /* by the configuration, grants and sessions */
	char *of;      /* a member's: the name of the section; else NULL */
	bool locked;   /* by the operator: nobody comes in as it */
	/* as the configuration says */
	char *user;
	char *group; /* NULL: the group of the user */
	struct strings groups;
	char *home, *shell; /* never NULL after identity_resolve() */
	uint32_t umask;
	struct strings environment; /* NAME=VALUE, added to execd's own */
	struct digests tokens;	    /* SHA-256 */
	/* of signed tokens; "*" stands for any subject or none */
	struct strings subjects;
	struct digests certificates; /* SHA-256 */
	struct strings certificate_subjects;
	struct strings peer_users;
	char *peer_group; /* of `user = peer': whose members it is */
	struct identity_limits limits;
	struct sandbox_rules sandbox; /* only the keys that the identity sets */
	struct record_rules record;   /* of terminals */
	struct path_map path_map;     /* of clients with drive letters */
	uint8_t audit_files;	      /* AUDIT_FILES_UNSET: as [audit] */
	/* set by identity_resolve() */
	char *user_name;
	uid_t uid;
	gid_t gid;
	gid_t *gids; /* supplementary groups, gid included */
	size_t ngids;
	uid_t *peer_uids; /* the uids of peer_users */
	gid_t peer_gid;	  /* of peer_group */
	/* the environment of the runner, which envPolicy inherits */
	char **env;
	uint32_t number; /* its number in root's list */
	int userns;	 /* the user namespace (spawn_userns()); -1: none */
	bool userns_tried;
	uint8_t redirects;	/* enum control_can: what a runner of it said */
	unsigned killed_spares; /* that are not reaped yet */
	struct identity_usage usage;
	struct account account;
};

/* Makes an identity with one reference, the caller's. */
struct identity *identity_new(const char *name);
struct identity *identity_ref(struct identity *id);
void identity_unref(struct identity *id); /* id may be NULL */

/*
 * Looks everything up. As an ordinary user, execd uses its own user and
 * environment if `user` is not set. As root, `user` must name another user. If
 * he was there when an earlier configuration was read, and is gone now, uid is
 * IDENTITY_GONE: nobody else is to be without a server because of him.
 * Returns 0, or with why[CONF_WHY_MAX] -ENOENT (no such user or group), -EPERM
 * (not permitted for this user), or another -errno.
 */
int identity_resolve(struct identity *id, char *why);

/* Makes it nobody's: it has a user to be shown, and nothing is asked for it. */
void identity_is_nobodys(struct identity *id, const char *user_name);

/* Tells whether one of these names means the identity: its own, or for a member
 * of a group that of the section. */
bool identity_is_named(const struct identity *id, const struct strings *names);

/* Finds the groups of id->user_name and id->gid. Returns 0 or -E2BIG. */
int identity_load_groups(struct identity *id);

/* Tells whether two identities are the same for a session, also after a
 * reload. */
bool identity_is(const struct identity *a, const struct identity *b);
