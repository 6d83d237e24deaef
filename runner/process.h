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

#include "groups.h"
#include "input.h"
#include "process_state.h"
#include "reaper.h"
#include "spawn.h"

struct event_base;
struct process;

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
	int fd;		    /* -1: at its end */
	size_t drain_bytes; /* still to be told before exited */
	struct event event;
	bool reading;
};

struct process {
	const struct process_observer *observer;
	void *owner;
	struct process_state state;
	struct reaper_watch watch;
	struct reaper_watch init;  /* sandboxed: pid 1 around it */
	struct nest *nest;	   /* likewise, while that lives; NULL: none */
	struct group_pool *groups; /* of .group */
	struct group *group;	   /* NULL: none, or given back */
	struct input input;
	struct process_stream streams[2]; /* stdout or pty; stderr */
	pid_t pid; /* also its process group; 0 once reaped */
	bool tty;
	bool sandboxed;
	bool terminated; /* by us: nothing is waited for */
	bool reaped;
	bool paused;	 /* congested; process_resume() goes on */
	int wait_status; /* once reaped */
};

/* Starts r's command into *p, which is zeroed and stays in place, in a control
 * group of its own where there are any (NULL: there are none). 0, or
 * -errno with the step that failed; *enforcing: it is one that enforces the
 * sandbox. */
int process_start(struct process *p, struct event_base *base,
    struct group_pool *groups, struct spawn_request *r, size_t retention_bytes,
    const struct process_observer *observer, void *owner, const char **step,
    bool *enforcing);

/* The client keeps up again. */
void process_resume(struct process *p);

/* SIGKILL to the process group. False: it has ended already. */
bool process_terminate(struct process *p);

/* A signal to the whole process group; nothing when it has ended. */
void process_signal(struct process *p, int sig);

/* Frees what p holds; it must have closed, or its session is ending. */
void process_clear(struct process *p);

#endif
