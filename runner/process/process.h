/* SPDX-License-Identifier: ISC */
/*
 * A running command: its descriptors, its end, and the events of both. It does
 * not know which protocol version reports the events (struct process_observer).
 *
 * exited is reported when the command itself has ended and its output up to
 * then is reported. closed follows when its streams have ended too. After
 * terminate, nothing is waited for.
 */
#pragma once

#include "base.h"
#include "command_cgroup.h"
#include "input.h"
#include "process_state.h"
#include "process_tree.h"
#include "spawn.h"

/* Reserved descriptors that finding processes and killing them takes at once.
 */
#define RESERVE_TO_KILL 3

struct event_base;
struct process;

/* Why a deadline was set. */
enum process_deadline {
	DEADLINE_GRACE,	  /* to end after it was asked to */
	DEADLINE_CLIENT,  /* for running, set by its start */
	DEADLINE_COMMAND, /* for running, set by the operator */
};

/* Receives the events of a process. */
struct process_observer {
	/*
	 * A process that was STARTING runs, or does not: then its owner clears
	 * it. NULL: this observer takes any for one that runs.
	 */
	void (*started)(struct process *p, const struct spawn_fault *fault);
	void (*output)(struct process *p, uint64_t seq, enum stream stream,
	    const void *data, size_t len);
	/* It has ended, and what it had written was reported. NULL: nothing
	 * is to be added (process_say()). */
	void (*ended)(struct process *p);
	void (*exited)(struct process *p, uint64_t seq);
	void (*closed)(struct process *p, uint64_t seq);
	/*
	 * Returns true if the client does not keep up. Then nothing is read
	 * until process_resume().
	 */
	bool (*congested)(struct process *p);
};

/* Our end of one output stream of the command. */
struct process_stream {
	struct process *process;
	enum stream stream;
	int fd; /* -1: has ended */
	struct wide_pipe wide;
	size_t drain_bytes; /* bytes to report before exited */
	struct event event;
	bool reading;
};

struct process {
	const struct process_observer *observer;
	void *owner;
	struct process_state state;
	struct reaper_watch watch;
	struct reaper_watch init; /* sandboxed: its pid 1 */
	/*
	 * Sandboxed: held until init has ended, or without an init, until the
	 * command has. NULL: none.
	 */
	struct sandbox *sandbox;
	struct cgroup_pool *groups; /* the pool that .group is from */
	struct group *group;	    /* NULL: none, or given back */
	struct input input;
	struct process_stream streams[2]; /* stdout or pty; stderr */
	pid_t pid;			  /* process group too; 0 once reaped */
	pid_t leader;			  /* like pid, kept after reaping */
	uint64_t
	    mark; /* of all that it starts; 0: held by a group or an init */
	bool tty;
	bool sandboxed;
	bool elsewhere;	 /* sandboxed: not in its cwd (spawn.h) */
	bool terminated; /* by us; nothing is waited for */
	bool reaped;
	uint64_t reaped_at; /* as in struct process_tree */
	bool paused;	    /* must wait, until process_resume() */
	/* STARTING: nobody knows yet whether its program runs. Its owner keeps
	 * it, and calls nothing but process_abandon(). */
	bool starting;
	int start_fd; /* STARTING: of spawn() */
	struct event start_event;
	int wait_status; /* valid once reaped */
	struct rusage usage;
	struct event deadline;
	int64_t deadline_ms; /* 0: none */
	enum process_deadline deadline_for;
	bool timed_out; /* killed at a deadline for running */
	bool killed;	/* we sent SIGKILL */
	/* bit mask of the signals we sent */
	uint64_t signals;
	/* count before it started (cgroup_own_oom_kills()) */
	uint64_t oom_kills;
	bool oom_killed;
	struct command_cgroup_counts counts; /* what limits did; valid at end */
};

/*
 * Starts r's command into *p, which is zeroed and stays at its address. The
 * command gets a control group of its own from groups (NULL: there are none).
 * Returns 0, or -errno with *fault. If r->may_wait, it is STARTING after 0.
 */
int process_start(struct process *p, struct event_base *base,
    struct cgroup_pool *groups, struct spawn_request *r, size_t retention_bytes,
    const struct process_observer *observer, void *owner,
    struct spawn_fault *fault);

/* Kills what is STARTING, with all that it has started, and frees what p holds.
 */
void process_abandon(struct process *p);

/* Resumes reading: the client keeps up again, or has taken output. */
void process_resume(struct process *p);

/* Adds text of ours to its standard error or its terminal. */
void process_say(struct process *p, const char *text, size_t len);

/*
 * Sends SIGKILL to the process group and to its whole control group. Returns
 * false if the command has ended already: then nothing is killed, because
 * clients send this after each command, and the server that a command has
 * started in the background lives on.
 */
bool process_terminate(struct process *p);

/* The same, and also kills what a command that has ended left behind. */
void process_kill_tree(struct process *p);

/*
 * Sends a signal to the whole process group. Does nothing if the command has
 * ended.
 */
void process_signal(struct process *p, int sig);

/*
 * Sends SIGKILL to the whole tree (process_tree.h) after timeout_ms. Of several
 * deadlines the earliest counts.
 */
void process_set_timeout(struct process *p, struct event_base *base,
    uint64_t timeout_ms, enum process_deadline why);

/*
 * Asks the command to end, and kills what is left after grace_ms. Returns false
 * if it has ended already.
 */
bool process_end_gracefully(
    struct process *p, struct event_base *base, uint64_t grace_ms);

/*
 * Sends SIGTERM, with SIGHUP for a shell on a terminal and SIGCONT for a
 * stopped process.
 */
void process_ask_to_end(struct process *p);

/*
 * Sends a signal to those of `target` that are left. Returns false if there are
 * none.
 */
bool process_signal_target(
    struct process *p, int sig, enum process_target target);

/*
 * Closes the input after everything written so far; on a terminal sends its
 * end-of-file character. Returns 0, also if it was closed before, or -ENOBUFS
 * if too much waits.
 */
int process_end_input(struct process *p);

/*
 * Sets the size of its terminal; does nothing if that has ended. Returns 0 or
 * -errno; -ENOTTY without a terminal.
 */
int process_resize(struct process *p, uint16_t rows, uint16_t cols);

/* Frees what p holds. p must be closed, or its session must be ending. */
void process_clear(struct process *p);
