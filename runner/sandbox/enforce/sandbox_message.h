/* SPDX-License-Identifier: ISC */
/*
 * What the runner orders of a sandbox, and the answers: frames over a stream
 * socket (u32 little-endian length, then a type and its fields), descriptors
 * with the first byte. Both sides are execd-runner and wait for each other:
 * an order is answered before the next one.
 */
#ifndef SANDBOX_MESSAGE_H
#define SANDBOX_MESSAGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "buf.h"
#include "cgroup.h"
#include "placeholder.h"
#include "resolve.h"

/* A plan of RESOLVE_MOUNTS_MAX mounts, or the arguments of one command. */
#define SANDBOX_MESSAGE_MAX (192u << 20)
#define SANDBOX_FDS_MAX	    (3 + CGROUP_HIERARCHIES + 2)
#define SANDBOX_STEP_MAX    240

/* Where a sandbox finds the user namespace, when the broker made one. */
#define SANDBOX_USERNS_FD (CONTROL_FD + 1)

enum sandbox_message {
	SANDBOX_BUILD =
	    1, /* sandbox_options + plan without placeholders; once, first */
	/* sandbox_command; stdin, stdout and stderr travel along, then what its
	 * control group is joined by (a placeholder says which hierarchies),
	 * then that group's directory if it is one of version 2, then for a
	 * terminal a socket (inside_terminal.h). Answers -ESTALE
	 * and `stale` when the view is not what was built any more. */
	SANDBOX_START = 2,
	SANDBOX_COVER = 3, /* the plan's placeholders, as they were made; before
			    * the first process after a time without any */
	SANDBOX_CHECK = 4, /* nothing; answers as SANDBOX_START */
	SANDBOX_FILES = 5, /* nothing; the helper's channel travels along */
};

/* Everything of a policy but its plan. */
struct sandbox_options {
	bool userns; /* SANDBOX_USERNS_FD is one */
	/* Where no user namespace can be made the plan may do without: it
	 * needs no view (landlock_only.h). */
	bool landlock_only;
	bool
	    parent_death_signal; /* no pid namespace would kill what is in it */
	bool unix_allow;	 /* command_filter_options */
	bool allow_32bit, allow_setid, allow_nested_userns, log;
	uint64_t shm_bytes;  /* of /dev/shm */
	uint64_t open_files; /* RLIMIT_NOFILE */
	uint64_t file_bytes; /* RLIMIT_FSIZE */
	/* Where there are no control groups to count them; 0: there are. */
	uint64_t processes;  /* RLIMIT_NPROC */
	uint64_t data_bytes; /* RLIMIT_DATA */
};

/* Decoded, the vectors are owned and their strings lie in the message. */
struct sandbox_command {
	const char *const *candidates; /* program paths to try, in order */
	char *const *argv;
	char *const *envp;
	const char *cwd;
	bool tty;
	uint8_t joins; /* bits: enum cgroup_hierarchy */
};

struct sandbox_answer {
	int err;	/* 0 or -errno */
	bool enforcing; /* the step that failed enforces the policy */
	bool stale;	/* it was: the view is what it was built as */
	char step[SANDBOX_STEP_MAX]; /* what failed; else empty */
	pid_t command, init; /* SANDBOX_START, SANDBOX_FILES (no init): children
			      * of the runner */
	unsigned landlock_abi; /* SANDBOX_BUILD: in force; 0: none */
	/* SANDBOX_BUILD: there are no user namespaces here; when it worked, it
	 * did without. */
	bool no_userns;
};

void sandbox_build_put(
    struct buf *b, const struct sandbox_options *o, const struct plan *plan);
void sandbox_start_put(
    struct buf *b, const struct sandbox_command *c, uint8_t joins);
void sandbox_cover_put(
    struct buf *b, const struct placeholder *placeholders, size_t n);
void sandbox_check_put(struct buf *b);
void sandbox_files_put(struct buf *b);
void sandbox_answer_put(struct buf *b, const struct sandbox_answer *a);

/* 0 or -EBADMSG. The type is read already; plan_clear() in any case. */
int sandbox_build_get(
    struct buf_reader *r, struct sandbox_options *o, struct plan *plan);

/* 0 or -EBADMSG. The message must outlive *c; sandbox_command_clear() in any
 * case. */
int sandbox_start_get(struct buf_reader *r, struct sandbox_command *c);
void sandbox_command_clear(struct sandbox_command *c);

/* The placeholders as mounts without a kind; plan_clear() in any case. 0 or
 * -EBADMSG.
 */
int sandbox_cover_get(struct buf_reader *r, struct plan *plan);
int sandbox_answer_get(struct buf_reader *r, struct sandbox_answer *a);

/* Sends what b holds as one message. 0 or -errno; blocks. */
int sandbox_send(int fd, const struct buf *b, const int *fds, size_t nfds);

/* Receives one message into *b, which is overwritten; descriptors are CLOEXEC
 * and the caller's. 0, -EPIPE at the end, -ETIMEDOUT beyond SO_RCVTIMEO,
 * -EBADMSG beyond a limit, or another -errno. */
int sandbox_recv(int fd, struct buf *b, int fds[SANDBOX_FDS_MAX], size_t *nfds);

#endif
