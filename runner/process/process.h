/* SPDX-License-Identifier: ISC */
/*
 * A running command: its descriptors, its end, and what is told of both. It
 * does not know which dialect tells it (struct process_observer).
 *
 * exited is told when the command itself has ended and what it had written
 * is told; closed when its streams are at their end too. After terminate
 * nothing is waited for.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "command_cgroup.h"
#include "input.h"
#include "process_state.h"
#include "process_tree.h"
#include "reaper.h"
#include "spawn.h"
#include "wide_pipe.h"

struct event_base;
struct process;

/* What a command has until a time for. */
enum process_deadline {
	DEADLINE_GRACE,	  /* to end as it was asked to */
	DEADLINE_CLIENT,  /* to run, says its start */
	DEADLINE_COMMAND, /* likewise, says the operator */
};

/* Who tells the client. */
struct process_observer {
	void (*output)(struct process *p, uint64_t seq, enum stream stream,
	    const void *data, size_t len);
	void (*exited)(struct process *p, uint64_t seq);
	void (*closed)(struct process *p, uint64_t seq);
	/* The client does not keep up: do not read, try again later
	 * (process_resume). */
	bool (*congested)(struct process *p);
};

/* One of our ends of the command's output. */
struct process_stream {
	struct process *process;
	enum stream stream;
	int fd; /* -1: at its end */
	struct wide_pipe wide;
	size_t drain_bytes; /* still to be told before exited */
	struct event event;
	bool reading;
};

struct process {
	const struct process_observer *observer;
	void *owner;
	struct process_state state;
	struct reaper_watch watch;
	struct reaper_watch init; /* sandboxed: pid 1 around it */
	/* Sandboxed: until init has ended, or where there is none, the command.
	 * NULL: none. */
	struct sandbox *sandbox;
	struct cgroup_pool *groups; /* of .group */
	struct group *group;	    /* NULL: none, or given back */
	struct input input;
	struct process_stream streams[2]; /* stdout or pty; stderr */
	pid_t pid;    /* also its process group; 0 once reaped */
	pid_t leader; /* the same, for those it left behind */
	uint64_t
	    mark; /* of all that it starts; 0: a group or an init has them */
	bool tty;
	bool sandboxed;
	bool terminated; /* by us: nothing is waited for */
	bool reaped;
	bool paused;	 /* congested; process_resume() goes on */
	int wait_status; /* once reaped */
	struct rusage usage;
	struct event deadline;
	int64_t deadline_ms; /* 0: none */
	enum process_deadline deadline_for;
	bool timed_out;	    /* killed at a deadline for running */
	bool killed;	    /* SIGKILL by us */
	uint64_t signals;   /* sent by us: a bit for each */
	uint64_t oom_kills; /* before it started */
	bool oom_killed;
};

/* Starts r's command into *p, which is zeroed and stays in place, in a control
 * group of its own where there are any (NULL: there are none). 0, or
 * -errno with the step that failed; *enforcing: it is one that enforces the
 * sandbox. */
int process_start(struct process *p, struct event_base *base,
    struct cgroup_pool *groups, struct spawn_request *r, size_t retention_bytes,
    const struct process_observer *observer, void *owner, const char **step,
    bool *enforcing);

/* The client keeps up again. */
void process_resume(struct process *p);

/* SIGKILL to the process group and to all of its control group. False: it has
 * ended already. */
bool process_terminate(struct process *p);

/* SIGKILL to its control group, daemons included, whether or not who started
 * them is still there; to what its tree shows when the group cannot be killed.
 */
void process_end_kill_all(struct process *p);

/* What a sandboxed command without an init around it has left behind, or has
 * started: as far as its tree shows (process_tree.h). */
void process_end_without_init(struct process *p);

/* A signal to the whole process group; nothing when it has ended. */
void process_signal(struct process *p, int sig);

/* Its streams are not waited for any longer. */
void process_abandon(struct process *p);

/* SIGKILL to all of it (process_tree.h) when timeout_ms are over; of several
 * the earliest counts. */
void process_set_timeout(struct process *p, struct event_base *base,
    uint64_t timeout_ms, enum process_deadline why);

/* Asks it to end, and kills what is left after grace_ms. False: it has ended
 * already. */
bool process_end_gracefully(
    struct process *p, struct event_base *base, uint64_t grace_ms);

/* It is closed: it has met the deadline of its start. What is left after a
 * graceful end is still killed. */
void process_end_closed(struct process *p);
void process_end_clear(struct process *p);

/* TERM, in the words a shell on a terminal or a stopped process hears. */
void process_ask_to_end(struct process *p);

/* A signal to those of `target` that are left. False: nobody is. */
bool process_signal_target(
    struct process *p, int sig, enum process_target target);

/* End of file behind everything written; on a terminal the character that
 * says so. 0, also when it was closed before, or -ENOBUFS: too much waits. */
int process_end_input(struct process *p);

/* Of its terminal; nothing when it has ended. 0 or -errno: -ENOTTY without
 * one. */
int process_resize(struct process *p, uint16_t rows, uint16_t cols);

/* Frees what p holds; it must have closed, or its session is ending. */
void process_clear(struct process *p);

#endif
