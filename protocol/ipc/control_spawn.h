/* SPDX-License-Identifier: ISC */
/*
 * What the broker asks of root: SPAWN_* of control.h. A fresh broker, which has
 * met no client, first says what there will be: files, paths, users. Root
 * seals this list, and from then on only numbers of it are said.
 */
#ifndef CONTROL_SPAWN_H
#define CONTROL_SPAWN_H

#include <stdbool.h>
#include <stdint.h>

#include "control_limits.h"

/* Environment of the broker: the number of its spawn channel, the user that it
 * becomes ("UID:GID"), and the directory for lists of placeholders. */
#define SPAWN_CHANNEL_VARIABLE "EXECD_SPAWN_CHANNEL"
#define BROKER_USER_VARIABLE   "EXECD_BROKER_USER"
#define PLACEHOLDERS_VARIABLE  "EXECD_PLACEHOLDERS"

#define CONTROL_PATH_MAX  4096
#define CONTROL_WHY_MAX	  192
#define CONTROL_PLACE_MAX 208 /* what a listener is called, with NUL */

struct control_begin {
	bool check; /* execd -t: nothing is made, nobody serves */
};

struct control_spawn_ready {
	uint32_t error; /* as in control_spawn_error */
	char step[64];
	uint32_t controllers; /* CGROUP_COUNTS_*: what its groups can hold */
	uint64_t groups_made; /* names of control groups that were used */
	bool is_root;	      /* else an ordinary user's */
	bool served;	      /* a broker before this one has served */
	bool reload;	      /* and does, until this one's list is whole */
};

struct control_trusted {
	bool past; /* as it is in the list in force, not on the disk */
	char path[CONTROL_PATH_MAX];
};

struct control_found {
	uint32_t error; /* an errno, or 0 */
	char why[CONTROL_WHY_MAX];
	uint32_t uid, mode; /* of a file */
};

enum control_place_kind {
	PLACE_LISTENER,
	PLACE_AUDIT_FILE,
	PLACE_AUDIT_SOCKET,
	PLACE_RECORDINGS, /* a directory */
	PLACE_KINDS
};

#define CONTROL_ADDRESS_BYTES 28 /* struct sockaddr_in6 */
#define CONTROL_GID_NONE      UINT32_MAX

struct control_place {
	uint32_t number; /* of paths, from 0 */
	uint8_t kind;
	/* PLACE_LISTENER: which one of the list in force it goes on with */
	char name[CONTROL_PLACE_MAX];
	uint8_t address[CONTROL_ADDRESS_BYTES]; /* sockaddr; of a path: none */
	char path[CONTROL_PATH_MAX];
	uint32_t mode, gid; /* of a listener's path */
};

/* Whom a runner becomes. What has no fixed length is in the list that comes
 * along (daemon/shared/spawn_user.h). */
struct control_user {
	uint32_t number;		 /* of users, from 0 */
	char name[CONTROL_IDENTITY_MAX]; /* of the identity, for the log */
	uint32_t uid, gid, umask;
	uint32_t session_processes, session_cpu_percent;
	bool limits_command_cpu;
	uint64_t session_memory_bytes;
	uint32_t max_processes, max_open_files, max_cpu_ms;
	uint64_t max_memory_bytes, max_file_bytes;
};

struct control_seal {
	uint32_t uid, gid; /* of the programs that hear strangers */
	bool debug;	   /* their log, too */
};

struct control_spawn_error {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
};

struct control_start {
	uint32_t user; /* its number */
	char
	    group[CONTROL_GROUP_MAX]; /* of the session: SESSION_GROUP_PREFIX */
	char session_id[CONTROL_SESSION_ID_MAX];
};

struct control_runner_started {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
	uint32_t pid;
	uint8_t cgroups; /* bits: which enum cgroup_hierarchy travel along */
};

struct control_number {
	uint32_t number;
};

enum control_program_kind { PROGRAM_OF_STRANGERS, PROGRAM_OF_KEYS };

struct control_program {
	uint8_t kind; /* enum control_program_kind */
};

/* A new file in a directory of the list. */
struct control_record {
	uint32_t number;
	char name[64]; /* letters, digits, `-` and `.`, which is not first */
};

/* The runners that root keeps, one after the other. */
struct control_next {
	uint32_t index;
};

/* As root started it: what a runner says of itself decides nothing of who may
 * resume its session. */
struct control_kept {
	uint32_t pid; /* 0: there are no more */
	uint32_t uid;
	char group[CONTROL_GROUP_MAX];
	char session_id[CONTROL_SESSION_ID_MAX];
	char name[CONTROL_IDENTITY_MAX];
};

/* A descriptor that is kept for the next broker, under a name. */
#define CONTROL_STORE_NAME_MAX 256
struct control_store {
	char name[CONTROL_STORE_NAME_MAX];
};

struct control_stored {
	bool there; /* and a descriptor comes along */
};

struct control_serving {
	bool replaceable; /* false: it cannot go on with another broker */
};

struct control_stop {
	uint8_t code; /* enum exit_code */
};

struct control_pid {
	uint32_t pid;
};

struct control_runner_status {
	uint32_t pid;
	uint32_t status; /* as of wait(2) */
};

#endif
