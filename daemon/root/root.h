/* SPDX-License-Identifier: ISC */
/*
 * execd: the program that is root. It binds nothing and parses nothing of a
 * client's or a runner's: it starts the broker and, on the broker's order,
 * runners, and it keeps what the next broker needs. See doc of the channel in
 * control.h (SPAWN_*).
 */
#ifndef ROOT_H
#define ROOT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"

/* Environment of the broker: the number of its spawn channel. */
#define SPAWN_CHANNEL_VARIABLE "EXECD_SPAWN_CHANNEL"

struct root {
	bool is_root;	    /* else an ordinary user's */
	int runner;	    /* the program */
	char **argv;	    /* handed on to the broker as they are */
	int listener;	    /* where brokers of another unit connect, or -1 */
	int channel;	    /* the broker's orders; -1: there is no broker */
	int events;	    /* what it is told beside its answers, or -1 */
	pid_t broker;	    /* 0: none, or another unit's */
	unsigned state;	    /* enum order_state */
	uint32_t spoken;    /* SPAWN_VERSION that it speaks */
	bool begun;	    /* a broker has begun, */
	bool served;	    /* and one has served */
	bool replaceable;   /* another broker could go on */
	int stop_signal;    /* the broker was told to end everything */
	bool stopping;	    /* everything ends, */
	int exit_code;	    /* with this */
	int64_t restart_ms; /* CLOCK_MONOTONIC: another broker, not before */
	int64_t started_ms;
	int64_t ping_ms;   /* when it is asked next; 0: it was not */
	int64_t answer_ms; /* by when it must have answered; 0: it has */
	uint32_t failures; /* ends before it served, in a row */
	pid_t older[16];   /* children that are not ours: execd was exec'd over
			    * them */
};

struct saved; /* saved.h */

extern struct root root;
void root_save(struct saved *s);

/* Opens the runner's program as it is installed now. */
void root_renew_runner(void);

/* --- orders.c ------------------------------------------------------------ */

/* What the broker may ask now. */
enum order_state { ORDERS_NEW = 1 << 0, ORDERS_SERVING = 1 << 1 };

/* Reads and carries out what the broker asked. False: it is gone, or it said
 * what is impossible, which is the same. */
bool orders_take(void);

/* A message to the broker. 0 or -errno; it never waits. */
int orders_tell(int fd, enum control_type type, const void *payload,
    const int *fds, size_t nfds);

/* --- runners.c ----------------------------------------------------------- */

/* A new one, which both ends of its control channel lead to: the runner's, and
 * the broker's, of which a copy is kept. */
struct spawn_order;
void runners_start(const struct spawn_order *o, int control_fd, int kept_fd,
    struct control_runner_started *answer, int dirs[CONTROL_FDS_MAX],
    size_t *ndirs);

/* What is kept of the one at that place, and the descriptor; pid 0: none. */
void runners_at(uint32_t index, struct control_kept *kept, int *fd);

bool runners_have(pid_t pid);
void runners_kill(pid_t pid);
void runners_kill_all(void);

/* The broker has heard of its end. 0, or -ENOENT. */
int runners_forget(pid_t pid);

/* Tells the broker of those that ended; false: not all of them now. */
bool runners_tell_exits(void);

/* There is another broker: it hears everything anew. */
void runners_tell_again(void);

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

/* Starts it. 0 or -errno. */
int broker_start(void);

/* A broker of another unit has connected. */
void broker_accept(void);

/* A child of that pid ended. False: it is not the broker. */
bool broker_reap(pid_t pid, int status);

/* Its channel ended, or it said what is impossible: it is killed. */
void broker_lose(const char *why);

/* It answered. */
void broker_is_alive(void);

/* Starts one that is due, and asks the one there is. When to come again, or
 * -1. */
int64_t broker_watch(int64_t now);

/* A signal of the operator's. */
void broker_signal(int sig);

#endif
