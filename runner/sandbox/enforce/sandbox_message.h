/* SPDX-License-Identifier: ISC */
/*
 * The requests that the runner gives a sandbox, and the answers. They are
 * frames on a stream socket: a u32 little-endian length, then a type and its
 * fields. Descriptors come with the first byte. Both sides are execd-runner and
 * wait for each other: a request is answered before the next one.
 */
#pragma once

#include "buf.h"
#include "cgroup.h"
#include "loopback.h"
#include "placeholder.h"
#include "sandbox_limits.h"

/*
 * Large enough for a plan of RESOLVE_MOUNTS_MAX mounts or the arguments of one
 * command.
 */
#define SANDBOX_MESSAGE_MAX (192u << 20)
#define SANDBOX_FDS_MAX	    (3 + CGROUP_HIERARCHIES + 3)
#define SANDBOX_STEP_MAX    240

/* The descriptor of the user namespace, if the broker made one. */
#define SANDBOX_USERNS_FD (CONTROL_FD + 1)

enum sandbox_message {
	SANDBOX_BUILD = 1, /* first and only once: sandbox_options and the plan
			      without placeholders */
	/*
	 * sandbox_command. The descriptors come in this order: stdin, stdout
	 * and stderr; one for each hierarchy in `joins`; the directory of the
	 * version 2 group, if it is joined; for a terminal a socket
	 * (inside_terminal()). Answers -ESTALE and `stale` if the view is no
	 * longer as it was built.
	 */
	SANDBOX_START = 2,
	SANDBOX_COVER = 3, /* the placeholders for a request of a file helper */
	SANDBOX_CHECK = 4, /* no fields; answers like SANDBOX_START */
	SANDBOX_FILES =
	    5, /* no fields; the helper's channel comes with it, and
		  then the lists of placeholders, if there are any */
	/*
	 * As many struct loopback_socket as the answer brings sockets.
	 * -EOPNOTSUPP: the sandbox has no network namespace of its own.
	 */
	SANDBOX_SOCKET = 6,
};

/* A policy without its plan. */
struct sandbox_options {
	bool userns; /* SANDBOX_USERNS_FD is open */
	/*
	 * If no user namespace can be made, the plan can do without one,
	 * because it needs no view (landlock_only.h).
	 */
	bool landlock_only;
	/*
	 * Before a user namespace is made, it is tried whether a command could
	 * mount its own /proc in one (userns_try_proc()). If it could not,
	 * there are no namespaces.
	 */
	bool try_proc;
	bool listed;		  /* the network is a list of hosts */
	bool redirected;	  /* ... to which all of TCP goes */
	bool parent_death_signal; /* ask for a signal when the runner dies: no
				     pid namespace would kill the processes */
	bool unix_allow;	  /* as in command_filter_options */
	bool allow_32bit, allow_setid, allow_nested_userns, log;
	/* with a network: BUILD brings a descriptor for own_ports_take() */
	bool guards_ports;
	uint64_t shm_bytes; /* size of /dev/shm */
	/* RLIMIT_NOFILE of a command; the soft limit may be more */
	uint64_t open_files, open_files_soft;
	uint64_t file_bytes; /* RLIMIT_FSIZE */
	uint32_t cpu_s;	     /* of a command: program_limit_cpu() */
	/* Used if no control groups count these; 0: no limit here. */
	uint64_t processes;    /* RLIMIT_NPROC */
	uint64_t memory_bytes; /* RLIMIT_DATA, of each process */
};

/* After decoding, the vectors are owned and the strings lie in the message. */
struct sandbox_command {
	const char *const *candidates; /* program paths to try, in order */
	char *const *argv;
	char *const *envp;
	const char *cwd;
	/* where it starts if the policy hides cwd; empty: nowhere */
	const char *instead;
	bool tty;
	bool given; /* it gets a descriptor 3 */
	/* of execd-netproxy, in host order; 0: resolv.conf is the host's */
	uint32_t resolver;
	uint8_t joins; /* mask of 1 << enum cgroup_hierarchy */
};

struct sandbox_answer {
	int err;		     /* 0 or -errno */
	bool enforcing;		     /* the failed step enforces the policy */
	bool stale;		     /* the view is no longer as it was built */
	char step[SANDBOX_STEP_MAX]; /* the failed step, or empty */
	pid_t command, init; /* SANDBOX_START, SANDBOX_FILES (no init): children
				of the runner */
	unsigned landlock_abi; /* SANDBOX_BUILD: the kernel's; 0: none */
	bool landlock_empty;   /* SANDBOX_BUILD: it restricts nothing here */
	bool loopback;	       /* SANDBOX_BUILD: its own (loopback.h) */
	bool own_unix;	   /* SANDBOX_BUILD: UNIX sockets (socket_calls.h) */
	bool guards_ports; /* SANDBOX_BUILD: execd's own are out of reach */
	bool names;	   /* SANDBOX_BUILD: commands may have a `resolver` */
	bool has_tmp;	   /* SANDBOX_BUILD: there is VIEW_TMP */
	bool elsewhere;	   /* SANDBOX_START: in `instead` */
	/*
	 * SANDBOX_BUILD: user namespaces cannot be made here, or with no_proc
	 * commands could mount no /proc in them. If `err` is 0, the sandbox was
	 * built without namespaces.
	 */
	bool no_namespaces, no_proc;
};

void sandbox_build_put(
    struct buf *b, const struct sandbox_options *o, const struct plan *plan);
/* The command covers the placeholders that exist in a view of its own. */
void sandbox_start_put(struct buf *b, const struct sandbox_command *c,
    uint8_t joins, const struct placeholders *p);
/* Returns false if there is nothing to cover. */
bool sandbox_cover_put(struct buf *b, const struct placeholders *p);
void sandbox_check_put(struct buf *b);
void sandbox_files_put(struct buf *b);
void sandbox_sockets_put(
    struct buf *b, const struct loopback_socket *s, size_t n);
void sandbox_answer_put(struct buf *b, const struct sandbox_answer *a);

/* A plan; not whole: without placeholders. It has no hosts afterwards. The
 * second returns 0 or -EBADMSG, and the caller calls plan_clear() in any case.
 */
void sandbox_plan_put(struct buf *b, const struct plan *plan, bool whole);
int sandbox_plan_get(struct buf_reader *r, struct plan *plan);

/*
 * Decodes BUILD after its type. Returns 0 or -EBADMSG. The caller calls
 * plan_clear() in any case.
 */
int sandbox_build_get(
    struct buf_reader *r, struct sandbox_options *o, struct plan *plan);

/*
 * Decodes START after its type. Returns 0 or -EBADMSG. The message must outlive
 * *c. The caller calls sandbox_command_clear() and plan_clear() in any case.
 */
int sandbox_start_get(
    struct buf_reader *r, struct sandbox_command *c, struct plan *cover);
void sandbox_command_clear(struct sandbox_command *c);

/*
 * Decodes COVER after its type: the placeholders as mounts, of which only path
 * and `seen` count. Returns 0 or -EBADMSG. The caller calls plan_clear() in any
 * case.
 */
int sandbox_cover_get(struct buf_reader *r, struct plan *plan);
/* Decodes SOCKET after its type. Returns the number of sockets or -EBADMSG. */
int sandbox_sockets_get(
    struct buf_reader *r, struct loopback_socket sockets[LOOPBACK_SOCKETS_MAX]);
int sandbox_answer_get(struct buf_reader *r, struct sandbox_answer *a);

/* Asked each time that SO_SNDTIMEO has passed: whether to wait again. */
struct sandbox_patience {
	bool (*waits)(void *arg);
	void *arg;
};

/*
 * Sends the content of b as one message; blocks. Returns 0 or -errno: -E2BIG
 * beyond a limit, -ETIMEDOUT beyond SO_SNDTIMEO and all patience (NULL: none).
 */
int sandbox_send(int fd, const struct buf *b, const int *fds, size_t nfds,
    const struct sandbox_patience *patience);

/*
 * Receives one message into *b, which is overwritten. The descriptors are
 * close-on-exec and owned by the caller. Returns 0, -EPIPE at the end,
 * -ETIMEDOUT beyond SO_RCVTIMEO, -EBADMSG beyond a limit, or another -errno.
 */
int sandbox_recv(int fd, struct buf *b, int fds[SANDBOX_FDS_MAX], size_t *nfds);

/*
 * The sandbox: the process that holds the namespaces and the view of one policy
 * and starts what runs in them (doc/sandbox.md C1). The runner starts it as
 * `execd-runner --sandbox`, and it listens to nobody else.
 *
 * Serves on CONTROL_FD until the runner closes it. A file helper runs `files`.
 */
void sandbox_run(void (*files)(void)) __attribute__((noreturn));
