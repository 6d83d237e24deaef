/* SPDX-License-Identifier: ISC */
/*
 * Who a session's commands run as: [identity NAME] of execd.conf(5), and
 * everything the C library knows about its user, looked up once, before the
 * first client.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf_value.h"
#include "sandbox_rules.h"

/* Given to every process of a session (setrlimit(2)); 0: as execd's own. */
struct identity_limits {
	uint32_t max_sessions; /* at once; 0: no limit of its own */
	uint32_t session_deadline_ms;
	uint32_t command_deadline_ms;  /* 0: none */
	uint64_t output_rate;	       /* bytes a second; 0: no limit */
	uint32_t session_processes;    /* control group; 0: the default */
	uint64_t session_memory_bytes; /* likewise; 0: none */
	uint32_t session_cpu_percent;  /* likewise, of one processor */
	bool limits_command_cpu;       /* max-cpu, of [sandbox] or its own */
	uint32_t max_processes;	       /* of the user */
	uint32_t max_open_files;
	uint32_t max_cpu_ms;
	uint64_t max_memory_bytes; /* address space of one process */
	uint64_t max_file_bytes;
};

/* Of each recording, unless the operator says otherwise. */
#define RECORD_MAX_BYTES (64u << 20)

/* Terminals that are recorded. */
struct record_rules {
	char *directory;    /* NULL: none */
	uint32_t number;    /* of root's list */
	bool input;	    /* what is typed, too */
	bool required;	    /* no recording, no run */
	uint64_t max_bytes; /* of each */
};

struct identity {
	char *name;    /* of the section, or the user's */
	unsigned refs; /* the configuration, grants, sessions */
	/* as configured */
	char *user;
	char *group; /* NULL: the user's */
	struct strings groups;
	char *home, *shell; /* once resolved, never NULL */
	uint32_t umask;
	struct strings environment;  /* NAME=VALUE, beside execd's own */
	struct digests tokens;	     /* SHA-256 */
	struct strings subjects;     /* of signed tokens; "*" any or none */
	struct digests certificates; /* SHA-256 */
	struct strings certificate_subjects;
	struct strings peer_users;
	struct identity_limits limits;
	struct sandbox_rules sandbox; /* of the ceiling; the rest unset */
	struct record_rules record;   /* of terminals */
	uint8_t audit_files;	      /* AUDIT_FILES_UNSET: as [audit] */
	/* as resolved */
	char *user_name;
	uid_t uid;
	gid_t gid;
	gid_t *gids; /* supplementary groups, gid included */
	size_t ngids;
	uid_t *peer_uids; /* of peer_users */
	char **env; /* environment of the runner: what envPolicy inherits */
	uint32_t number; /* of root's list */
	int userns;	 /* user_namespace.h; -1: none */
	bool userns_tried;
};

/* One reference, the caller's. */
struct identity *identity_new(const char *name);
struct identity *identity_ref(struct identity *id);
void identity_unref(struct identity *id); /* NULL is fine */

/*
 * Looks everything up. Without `user` it is the one execd runs as, with
 * execd's own environment, as an ordinary user; root names another. 0, or
 * with why[CONF_WHY_MAX]: -ENOENT no such user or group, -EPERM not for this
 * user, or another -errno.
 */
int identity_resolve(struct identity *id, char *why);

/* The same in the eyes of a session: after a reload, too. */
bool identity_is(const struct identity *a, const struct identity *b);

#endif
