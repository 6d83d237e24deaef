/* SPDX-License-Identifier: ISC */
/*
 * What the broker asks of root. A fresh broker, which has met no client, first
 * says what there will be: files, paths, users. Root seals this list, and from
 * then on only numbers of it are said.
 *
 * A message is a spawn_head and the struct named beside its type, byte for
 * byte: root has nothing to decode. The compiler refuses a struct with padding,
 * so no message carries bytes that nobody has written. A message of another
 * length than its struct's is impossible. So is a text without its NUL, and a
 * message to root that brings a descriptor: root makes what both need.
 */
#pragma once

#include "base.h"
#include "control_limits.h"
#include "control_version.h"

enum spawn_type {
	/* broker -> root, commands and their answers: first the list */
	SPAWN_BEGIN = 70, /* control_begin; once */
	SPAWN_READY = 71, /* control_spawn_ready + fds: of events, of
			   * execd-http, execd-files, spawn_kept,
			   * `cgroups` */
	SPAWN_FILE = 94,  /* control_trusted */
	SPAWN_FOUND = 95, /* control_found (+ fd); `later`: + fd, on which
			   * control_found (+ fd) comes */
	SPAWN_PLACE = 96, /* control_place; answered by FOUND */
	SPAWN_LIST = 97,  /* control_user_list: of the next user, a piece of its
			   * groups and environment */
	SPAWN_USER = 98,  /* control_user; of a serving broker: the same with
			   * fewer groups */
	SPAWN_SEAL = 100, /* control_seal; the list is whole */
	SPAWN_SEALED = 101,   /* nothing */
	SPAWN_RELOADED = 113, /* control_reloaded: passed on to the broker that
			       * asked for the reload, as an event */
	/* then numbers of the list */
	SPAWN_START = 72,    /* control_start */
	SPAWN_STARTED = 73,  /* control_runner_started; of a runner + fds: our
			      * end of its control channel, `cgroups` */
	SPAWN_PROGRAM = 102, /* control_program: STARTED + fd, its channel */
	SPAWN_OPEN = 104,    /* control_number, of a place: FOUND */
	SPAWN_CLOSE = 106,   /* control_number, of a listener */
	SPAWN_RECORD = 108,  /* control_record: FOUND */
	SPAWN_KILL = 78,     /* control_pid */
	SPAWN_END = 80,	     /* control_pid: it was heard, its pid is free */
	SPAWN_NEXT = 82,     /* control_next */
	SPAWN_KEPT = 83,     /* control_kept (+ fd: our end of its control) */
	SPAWN_ENDING = 84,   /* nothing: SIGTERM came, and spawn_kept says so */
	SPAWN_SERVING = 88,  /* control_serving; once */
	SPAWN_RELOAD = 110,  /* nothing; RELOADED tells what comes of it */
	SPAWN_STOP = 90,     /* control_stop: everything ends with this code */
	SPAWN_ALIVE = 92,    /* nothing; once for each PING */

	/* root -> broker, events on their own channel */
	SPAWN_EXITED = 79, /* control_runner_status */
	SPAWN_PING = 93,   /* nothing: answered by ALIVE */
	SPAWN_LEAVE = 111, /* nothing: another broker goes on */

	/* programs that root starts for the broker -> broker */
	SPAWN_OPENED = 75,   /* control_spawn_error (+ fd) */
	SPAWN_ACCOUNT = 112, /* spawn_account; again + fd: its groups */
};

/* Environment of the broker: the number of its spawn channel, and the user that
 * it becomes ("UID:GID"). */
#define SPAWN_CHANNEL_VARIABLE "EXECD_SPAWN_CHANNEL"
#define BROKER_USER_VARIABLE   "EXECD_BROKER_USER"

/* Where root makes a directory for the sockets of `execd ctl`. */
#define CTL_ROOT_DIRECTORY "/run/execd"

#define CONTROL_PATH_MAX  4096
#define CONTROL_WHY_MAX	  192
#define CONTROL_PLACE_MAX 208 /* what a listener is called, with NUL */

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wpadded"

/* Whether the text in that array of a message has an end. */
#define SPAWN_IS_TEXT(array) (memchr(array, '\0', sizeof(array)) != NULL)

/* Of each message. Where a field says whether something is so, 1 is yes. */
struct spawn_head {
	uint32_t type;	       /* enum spawn_type */
	uint32_t version;      /* SPAWN_VERSION */
} __attribute__((aligned(8))); /* as what follows */

enum begin_flag {
	BEGIN_CHECK = 1, /* execd -t: nothing is made, nobody serves */
	/* of execd.service: the broker before it failed, and */
	BEGIN_AGAIN = 2,
	BEGIN_PREVIOUS = 4, /* it is the program that served last */
};

struct control_begin {
	uint32_t flags; /* enum begin_flag */
};

struct control_spawn_ready {
	uint32_t error; /* as in control_spawn_error */
	char step[64];
	uint32_t controllers; /* CGROUP_COUNTS_*: what its groups can hold */
	uint8_t is_root;      /* else an ordinary user's */
	uint8_t served;	      /* a broker before this one has served */
	uint8_t reload;	      /* and does, until this one's list is whole */
	uint8_t cgroups;      /* as in STARTED, of the group of all sessions */
	uint32_t pid;	      /* of root's execd */
};

/* What a broker leaves for the next one, in a file of root's making that root
 * does not read. */
struct spawn_kept {
	char drained[64];    /* by whom and since when; "": nobody */
	int64_t until_ms[2]; /* a drain for SIGTERM: notice, end; 0: none */
	uint64_t lost_lines; /* of the log */
};

struct control_trusted {
	uint32_t past; /* as it is in the list in force, not on the disk */
	char path[CONTROL_PATH_MAX];
};

/* The copy of a file has its mode, and this bit if the file is root's. */
#define COPY_OF_ROOTS S_ISVTX

struct control_found {
	uint32_t error; /* an errno, or 0 */
	char why[CONTROL_WHY_MAX];
	uint32_t later; /* a child of root's works on it, and answers */
};

enum control_place_kind {
	PLACE_LISTENER,
	PLACE_AUDIT_FILE,
	PLACE_AUDIT_SOCKET,
	PLACE_RECORDINGS, /* a directory */
	PLACE_KINDS
};

enum place_file {
	PLACE_OWN,  /* the socket goes on if its file is there */
	PLACE_ANEW, /* another socket */
	PLACE_LOST, /* it goes on, whatever became of its file */
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
	uint8_t ipv6_only; /* [::] leaves IPv4 to others */
	uint8_t file;	   /* enum place_file: if the socket goes on */
	uint8_t none;
	uint32_t mode, gid; /* of a listener's path */
};

/* What has no fixed length of a user is a list (daemon/shared/spawn_user.h),
 * which comes before it in pieces. */
struct control_user_list {
	uint32_t len;
	uint8_t bytes[1020];
};

/* Whom a runner becomes. */
struct control_user {
	uint32_t number;		 /* of users, from 0 */
	char name[CONTROL_IDENTITY_MAX]; /* of the identity, for the log */
	uint32_t uid, gid, umask;
	/* What all its sessions have together. Here and in the seal, 0: no
	 * limit. */
	uint32_t tasks_max, cpu_quota_percent, cpu_weight, io_weight;
	uint64_t memory_max_bytes;
	/* its commands have limits of their own on processor time */
	uint8_t limits_command_cpu, none[7];
	/* of each process; 0: as root has it */
	uint32_t max_open_files, nothing; /* older: of processor time */
	uint64_t max_address_bytes, max_file_bytes;
};

struct control_seal {
	uint32_t uid, gid; /* of the programs that hear strangers */
	uint8_t debug;	   /* their log, too */
	uint8_t none[3];
	uint32_t all_tasks_max; /* of all sessions together */
	uint64_t all_memory_max_bytes;
};

struct control_spawn_error {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
};

/* What a child that makes a user namespace says, to whom its channel leads. */
struct spawn_opened {
	struct spawn_head head; /* SPAWN_OPENED */
	struct control_spawn_error result;
	uint32_t none;
};

/* What execd-broker --account finds out about a user. The groups are such a
 * list without an environment, in a file in memory. */
struct spawn_account {
	struct spawn_head head; /* SPAWN_ACCOUNT */
	uint32_t state;		/* enum account_state */
	uint32_t error;		/* an errno */
	uint32_t uid, gid;
};

enum account_state {
	ACCOUNT_THERE,
	ACCOUNT_GONE,
	ACCOUNT_EXPIRED,
	ACCOUNT_ERROR,
};

struct control_start {
	uint32_t user; /* its number */
	char session_id[CONTROL_SESSION_ID_MAX];
};

struct control_runner_started {
	uint32_t error; /* an errno, or 0 */
	char step[64];	/* that failed */
	uint32_t pid;
	uint8_t cgroups; /* bits: which enum cgroup_hierarchy travel along */
	uint8_t none[7];
	uint64_t group; /* of the session: SESSION_GROUP_PREFIX and this */
	uint64_t identity_group; /* IDENTITY_GROUP_PREFIX and this, around it */
};

struct control_number {
	uint32_t number;
};

/* The first two hear strangers, and become the user of the seal. The others
 * are there for a user of the list: one makes a user namespace for his
 * sandboxes, and one, which stays root, asks the name services about him. */
enum control_program_kind {
	PROGRAM_OF_STRANGERS,
	PROGRAM_OF_KEYS,
	PROGRAM_OF_NAMESPACE,
	PROGRAM_OF_ACCOUNT,
	PROGRAM_KINDS
};

struct control_program {
	uint32_t kind; /* enum control_program_kind */
	uint32_t user; /* its number, if it is there for one */
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
	uint64_t group, identity_group; /* as in STARTED */
	char session_id[CONTROL_SESSION_ID_MAX];
	char name[CONTROL_IDENTITY_MAX];
};

/* What a reload came to. */
struct control_reloaded {
	uint32_t code; /* enum exit_code */
	char text[8180];
};

struct control_serving {
	uint32_t replaceable; /* false: it cannot go on with another broker */
};

struct control_stop {
	uint32_t code; /* enum exit_code */
};

struct control_pid {
	uint32_t pid;
};

struct control_runner_status {
	uint32_t pid;
	uint32_t status; /* as of wait(2) */
};

#pragma GCC diagnostic pop

/* Room for any message. */
struct spawn_packet {
	struct spawn_head head;
	uint8_t payload[8192];
};
