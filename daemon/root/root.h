/* SPDX-License-Identifier: ISC */
/*
 * execd: the program that is root. It parses nothing of a client's or a
 * runner's, and no configuration: it starts the broker and, on the broker's
 * order, runners and the programs that hear strangers, and it keeps what the
 * next broker needs. The channel is described in control_spawn.h.
 */
#ifndef ROOT_H
#define ROOT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "list.h"
#include "programs.h"

/* What a broker may ask now. */
enum order_state {
	ORDERS_NEW = 1 << 0,
	ORDERS_LISTING = 1 << 1, /* it has met no client */
	ORDERS_SEALED = 1 << 2,	 /* until the one before it is gone */
	ORDERS_SERVING = 1 << 3,
};

struct broker_process {
	pid_t pid;	   /* 0: none, or another unit's */
	int channel;	   /* its orders; -1: there is none */
	int events;	   /* what it is told beside its answers, or -1 */
	unsigned state;	   /* enum order_state */
	uint32_t spoken;   /* SPAWN_VERSION that it speaks */
	bool check;	   /* execd -t */
	bool reload;	   /* one serves meanwhile */
	int text;	   /* who asked for the reload is told there, or -1 */
	struct list *list; /* that it makes */
	int64_t started_ms;
	int64_t ping_ms;   /* when it is asked next; 0: it was not */
	int64_t answer_ms; /* by when it must have answered; 0: it has */
};

struct root {
	bool is_root; /* else an ordinary user's */
	struct programs programs;
	char **argv;  /* handed on to the broker as they are */
	int listener; /* where brokers of another unit connect */
	struct broker_process serving,
	    next;	    /* the next one is not heard by clients */
	struct list *list;  /* in force, or NULL */
	bool begun;	    /* a broker has begun, */
	bool served;	    /* and one has served */
	bool replaceable;   /* another broker could go on */
	int stop_signal;    /* the broker was told to end everything */
	bool stopping;	    /* everything ends, */
	int exit_code;	    /* with this */
	bool reload;	    /* another one, after the one that is made */
	int64_t restart_ms; /* CLOCK_MONOTONIC: not before */
	int64_t leave_ms;   /* the serving one has left by then; 0 */
	uint32_t failures;  /* ends before it served, in a row */
	pid_t older[16];    /* children that are not ours: execd was exec'd over
			     * them */
};

struct saved; /* saved.h */

extern struct root root;
void root_save(struct saved *s);

/* Opens the programs as they are installed now. */
void root_renew_programs(void);

/* --- broker_commands.c
 * ------------------------------------------------------------ */

/* Reads and carries out what the broker asked. False: it is gone, or it said
 * what is impossible, which is the same. */
bool broker_commands_take(struct broker_process *b);

/* A message to the broker. 0 or -errno; it never waits. */
int broker_commands_tell(int fd, enum control_type type, const void *payload,
    const int *fds, size_t nfds);

/* The list of that broker is in force, and it serves. */
void broker_commands_serve(struct broker_process *b);

/* --- runners.c ----------------------------------------------------------- */

/* A new one, which both ends of its control channel lead to: the runner's, and
 * the broker's, of which a copy is kept. */
void runners_start(const struct spawn_order *o,
    const struct control_start *start, int control_fd, int kept_fd,
    struct control_runner_started *answer, int dirs[CONTROL_FDS_MAX],
    size_t *ndirs);

/* Another program of ours, which lives no longer than the broker after this
 * one. */
void runners_keep_program(pid_t pid);

/* What is kept of the runner at that place, and the descriptor; pid 0: none. */
void runners_at(uint32_t index, struct control_kept *kept, int *fd);

bool runners_have(pid_t pid);

/* Is one of them in the session's control group of that name? */
bool runners_have_group(const char *group);
void runners_kill(pid_t pid);
void runners_kill_all(void);

/* The broker has heard of its end. 0, or -ENOENT. */
int runners_forget(pid_t pid);

/* Some may have ended. */
void runners_look(void);

/* Tells the broker of those that ended; false: not all of them now. */
bool runners_tell_exits(void);

/* There is another broker: it hears everything anew, but nothing of the
 * programs of the one before, which are killed. */
void runners_change_hands(void);

/* Waits for all of them, who were killed. */
void runners_clear(void);

/* The largest number in the name of a session's control group. */
uint64_t runners_groups_made(void);

void runners_save(struct saved *s);

/* --- store.c ------------------------------------------------------------- */

/* Keeps a copy of fd under the name; -1: no more. 0 or -errno: -ENOSPC there
 * are too many. */
int store_keep(const char *name, int fd);

/* The descriptor of that name, which stays the store's, or -1. */
int store_find(const char *name);

/* There is another broker; what it has not asked for when it serves is not
 * kept any longer. */
void store_begin(void);
void store_drop_unused(void);

void store_save(struct saved *s);

/* --- broker.c ------------------------------------------------------------ */

/* Starts one that has nothing to do with others yet. 0 or -errno. */
int broker_start(void);

/* The serving one, or SIGHUP, wants the configuration read anew. text: where
 * that is told, the caller's, or -1. */
void broker_reload(int text);

/* A broker of another unit has connected. */
void broker_accept(void);

/* A child of that pid ended. False: it is no broker. */
bool broker_reap(pid_t pid, int status);

/* Its list is whole and good. */
void broker_sealed(struct broker_process *b);

/* Its channel ended, or it said what is impossible: it is killed. */
void broker_lose(struct broker_process *b, const char *why);

/* It answered. */
void broker_is_alive(struct broker_process *b);

/* Starts one that is due, and asks those there are. When to come again, or
 * -1. */
int64_t broker_watch(int64_t now);

/* A signal of the operator's. */
void broker_signal(int sig);

/* No broker of ours may be left: the first of them, or 0. */
pid_t broker_any(void);

#endif
