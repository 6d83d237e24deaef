/* SPDX-License-Identifier: ISC */
/*
 * execd: the program that is root. It parses nothing of a client or a runner,
 * and no configuration. It starts the broker. For the broker it starts runners
 * and the programs that hear strangers, and keeps what the next broker needs.
 * control_spawn.h describes the channel.
 */
#pragma once

#include "base.h"
#include "cgroup.h"
#include "list.h"
#include "programs.h"
#include "task.h"

/* What a broker may ask depends on this. */
enum broker_stage {
	BROKER_NEW = 1 << 0,
	BROKER_LISTING = 1 << 1, /* it has met no client yet */
	BROKER_SEALED = 1 << 2,	 /* until the broker before it is gone */
	BROKER_SERVING = 1 << 3,
	BROKER_READY = 1 << 4, /* so is its front-end; it hears signals */
};

struct broker_process {
	pid_t pid;		/* 0: none, or a broker of another unit, */
	int pidfd;		/* which this names; -1: there is none */
	int channel;		/* its commands; -1: there is no channel */
	int events;		/* events for it, or -1 */
	unsigned state;		/* enum broker_stage */
	uint32_t spoken;	/* the SPAWN_VERSION that it speaks */
	uint32_t flags;		/* enum begin_flag */
	bool reload;		/* another broker serves meanwhile, */
	bool asked;		/* and has asked for it */
	struct list *list;	/* the list that it makes */
	struct spawn_user user; /* of which it says something */
	/* of its version, until it serves; none: root.programs. Then those
	 * that served before, until it is ready */
	struct programs programs;
	int64_t started_ms;
	int64_t ping_ms; /* when the next PING is sent; 0: none was sent yet */
	int64_t answer_ms; /* when it must have answered; 0: it has */
};

#define BROKER_NONE                                                            \
	{                                                                      \
		.programs = PROGRAMS_NONE, .pidfd = -1, .channel = -1,         \
		.events = -1                                                   \
	}

struct root {
	bool is_root; /* else an ordinary user's */
	/* What the serving broker starts, and its own program: the next broker,
	 * too, if the installed one cannot be used. */
	struct programs programs;
	bool previous;	  /* those are next: the installed one did not serve */
	char **argv;	  /* passed on to the broker unchanged */
	int listener;	  /* where brokers of another unit connect */
	int kept;	  /* what brokers leave for the next one; -1: nothing */
	bool asked;	  /* for a reload, by the broker that serves */
	int64_t alone_ms; /* since when there is none of them; 0: there is */
	struct broker_process serving, next; /* `next` hears no clients */
	struct list *list;		     /* the current one, or NULL */
	bool begun;			     /* a broker has begun, */
	bool served;			     /* and one has served */
	bool replaceable; /* another broker could take over */
	int stop_signal;  /* with which the broker was told to end everything */
	bool ending;	  /* SIGTERM came once, for each broker from then on, */
	bool ending_kept; /* and they know it without being told */
	bool stopping;	  /* everything ends, */
	int exit_code;	  /* with this code */
	bool reload; /* another broker is wanted after the one on its way */
	int64_t restart_ms; /* CLOCK_MONOTONIC: no broker is started before */
	/* when the serving broker must have left; 0: it may stay */
	int64_t leave_ms;
	uint32_t failures; /* ends before serving, in a row */
	/* children of another program, over which execd was executed */
	pid_t older[16];
};

struct saved; /* saved.h */

extern struct root root;
void root_save(struct saved *s);

/* --- broker_commands.c -------------------------------------------------- */

/* Reads and carries out the broker's commands. Returns false if the broker is
 * gone or has sent something impossible. */
bool broker_commands_take(struct broker_process *b);

/* Sends a message to the broker: its head and the `len` bytes of its struct.
 * Never waits. Returns 0 or -errno. */
int broker_commands_tell(int fd, enum spawn_type type, const void *payload,
    size_t len, const int *fds, size_t nfds);

/* The list of that broker becomes the current one, and the broker serves. */
void broker_commands_serve(struct broker_process *b);

/* --- runners.c ---------------------------------------------------------- */

/* Starts a runner, in a control group whose number no other session has had.
 * Returns its pid, or -errno with the step that failed in the answer. fds are
 * for the broker: first its end of the runner's control channel, which stays
 * open here, then the caller's directories of the session's control group. */
#define RUNNERS_FDS_MAX (1 + CGROUP_HIERARCHIES)
pid_t runners_start(const struct spawn_user *o,
    const struct control_start *start, struct control_runner_started *answer,
    int fds[RUNNERS_FDS_MAX], size_t *nfds);

/* Keeps the pid of another program, which lives no longer than the next
 * broker. */
void runners_keep_program(pid_t pid);

/* Describes the runner with that index, and returns its descriptor. pid is 0 if
 * there is none. */
void runners_at(uint32_t index, struct control_kept *kept, int *fd);

bool runners_have(pid_t pid);

void runners_kill(pid_t pid);
void runners_kill_all(void);

/* The broker has heard of the end. Returns 0 or -ENOENT. */
int runners_forget(pid_t pid);

/* Tells whether the child has ended. It stays a zombie: its pid is nobody
 * else's until waitpid(2). */
bool child_has_ended(pid_t pid, siginfo_t *info);

/* Some runners may have ended. */
void runners_look(void);

/* Tells the broker which ended. Returns false if not all can be told now. */
bool runners_tell_exits(void);

/* There is another broker. It hears of all ends again. The programs of the
 * previous broker are killed, and it hears nothing of them. */
void runners_change_hands(void);

/* Waits for all runners, which have been killed. */
void runners_clear(void);

void runners_save(struct saved *s);

/* --- broker.c ----------------------------------------------------------- */

/* Starts a broker, which at first concerns nobody else. Returns 0 or -errno. */
int broker_start(void);

/* The serving broker or SIGHUP wants the configuration to be read again. */
void broker_reload(void);

/* A broker of another unit has connected. */
void broker_accept(void);

/* A broker may have ended. */
void broker_reap(void);

/* Its list is complete and valid. */
void broker_sealed(struct broker_process *b);

/* Its channel ended, or it sent something impossible: it is killed. */
void broker_lose(struct broker_process *b, const char *why);

/* It has answered. */
void broker_is_alive(struct broker_process *b);

/* Starts a broker that is due, and sends PINGs. Returns when to call it again,
 * or -1. */
int64_t broker_watch(int64_t now);

/* The operator sent a signal. */
void broker_signal(int sig);

/* Returns the program of that broker's version, which stays open here. */
int broker_program(
    const struct broker_process *b, enum installed_program which);

/* Returns the first of our brokers that still exists, or 0. */
pid_t broker_any(void);

/* Makes the file in which brokers leave what the next one needs. */
void kept_make(void);
void kept_save(struct saved *s);

/* --- broker_child.c ----------------------------------------------------- */

/* Starts the broker. channel is its end of the channel, which stays the
 * caller's, as the program does; -1: there is none. Returns the pid or
 * -errno. */
pid_t broker_child_start(int program, int channel);

/* This process itself becomes execd-broker, for a command that is no service:
 * execd doctor. Returns only on failure, after printing the error. */
void broker_child_become(void);

/* --- runner_start.c ----------------------------------------------------- */

/*
 * The child that becomes a user's program. It is a copy of root's execd until
 * it executes the program. This copy holds nothing but numbers, and the user
 * cannot read it because it is not dumpable.
 */

/* Starts a runner, as root in namespaces of its own, with its control channel
 * on CONTROL_FD, and in the session's control group. Returns its pid or
 * -errno. */
pid_t spawn_runner(const struct spawn_user *o, uint64_t group,
    const char *session_id, int control_fd, const struct cgroup *cgroup);

/* Starts another program. `o` is the user of the list that it is there for, or
 * NULL. Returns its pid, and in *own the other end of its channel, the
 * caller's, or -errno. */
pid_t spawn_program(
    enum control_program_kind kind, const struct spawn_user *o, int *own);

/* Checks whether this host can give a session its namespaces. Returns 0, or
 * -errno with the step that failed. */
int spawn_probe(const char **step);

/* --- logs.c ------------------------------------------------------------- */

/* Reads the log of a child, which has pair[1] as its descriptor 2, and closes
 * both if there is none (pid < 0). `session` is NULL if it has none. */
void logs_keep(
    int pair[2], pid_t pid, const char *program, const char *session);

/* The child has ended; its last words are passed on. */
void logs_end(pid_t pid);

/* poll(2), which also passes on what comes from the children. */
#define LOGS_POLL_OWN 4
int logs_poll(struct pollfd own[LOGS_POLL_OWN], int timeout);

void logs_save(struct saved *s);

/* After it: leaves the pipe that an older version had before the log. */
void logs_resume(void);

/* --- reexec.c ----------------------------------------------------------- */

/*
 * Another version of this program takes over by execve(2). The process stays,
 * and so do its children, their channels and everything that is kept. Neither
 * the broker nor a runner notices. SIGUSR2 asks for it.
 */

/* `execd --check-state`: whether this program can go on from the state on
 * CONTROL_FD. It then exits with REEXEC_YES, because many programs that are not
 * execd exit with 0. What is in the way is logged. */
#define REEXEC_CHECK "--check-state"
#define REEXEC_YES   93
int reexec_check(void);

/* Goes on from the state of the previous version. Returns false if there is
 * none. */
bool reexec_resume(void);

/* Asks the installed program whether it can take over. If it can, reexec_turn()
 * will not return at some later call. If not, this program goes on and the log
 * says why. */
void reexec_ask(void);

/* Tells whether the child with that pid is the one that was asked. */
bool reexec_has(pid_t pid);

/* Takes its answer. Called between two commands. */
void reexec_reap(void);

/* Returns when to call it again, or -1. */
int64_t reexec_watch(int64_t now);
