/* SPDX-License-Identifier: ISC */
/*
 * The session: everything a client could lose. Lives as long as its runner;
 * clients attach to it one after the other.
 */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include <event2/event_struct.h>

#include "channel.h"
#include "command_cgroup.h"
#include "control.h"
#include "placeholder_list.h"
#include "process.h"
#include "queue.h"
#include "rate.h"
#include "sandbox_report.h"
#include "sandboxes.h"
#include "spool.h"
#include "table.h"

struct event_base;
struct file_router;
struct pattern_scan;
struct start_queue;

/* Where the handshake of a connection stands; a mask in methods.def. */
enum session_state {
	SESSION_NEW = 1 << 0,	      /* waiting for initialize */
	SESSION_INITIALIZED = 1 << 1, /* waiting for initialized */
	SESSION_READY = 1 << 2,
	SESSION_WATCHING = 1 << 3, /* the same, of one that only watches */
};

/* A connection: where requests come from and answers go. */
struct client {
	struct session *session;
	struct channel channel;
	enum session_state state;
	char peer[CONTROL_PEER_MAX];
	unsigned waiting; /* requests without answer */
	bool watching;
	bool stdio;
	bool input_ended; /* it said all it will say */
	bool violated;	  /* it broke the envelope */
};

/* Processes beside the runner that serve some methods. */
enum helper_kind { HELPER_FILES, HELPER_HTTP, HELPER_KINDS };
TAILQ_HEAD(helper_list, helper);

/* A connection that only watches. */
struct watcher;

/* A request that is answered later; dies with its connection. */
struct waiter;

/* A process and what the session keeps about it. */
struct session_process {
	struct table_node node;			  /* session.processes, by id */
	TAILQ_ENTRY(session_process) link;	  /* session.started */
	TAILQ_ENTRY(session_process) closed_link; /* session.closed */
	TAILQ_HEAD(, waiter) waiters;		  /* process/read with waitMs */
	struct process process;
	struct sandbox_report sandbox;
	struct session *session;
	struct recording *recording; /* recorder.h; NULL: not recorded */
	bool unrecorded;	     /* ended because it must be */
	bool v0;		     /* of dialect_v0.c, where ids are apart */
	bool orphaned;		     /* v0: its connection is over */
	int64_t forget_ms;	     /* closed: when the id is free again */
	size_t output_kept;	     /* closed: bytes of session.output_kept */
	uint64_t number;	     /* counts the starts of the session */
	int64_t started_ms;	     /* since 1970 */
	int64_t began_ms;	     /* the same, as now_ms() */
	char *start_id;		     /* owned; NULL: none */
	size_t start_id_len;
	char *command; /* owned: what is kept of argv, each with its NUL */
	size_t command_len;
	bool command_cut; /* there was more */
	size_t id_len;
	char id[];
};

/*
 * What serves the requests of a session's clients (server.h). The session
 * knows connections and processes; it does not know a method.
 */
struct session_server {
	/* Once, before everything else. */
	void (*begin)(struct session *s);
	/* A whole message of a client. */
	void (*message)(struct client *c, char *text, size_t len);
	/* The attached client reads again. */
	void (*drained)(struct session *s);
	/* The attached client hung up, and nobody reads its answers. */
	void (*hung_up)(struct session *s);
	/* The connection is over, and what belongs to it ends. */
	void (*detached)(struct session *s);
	/* A sandbox is to make room. False: a request or a handle needs it. */
	bool (*give_up)(struct session *s, const struct sandbox *sandbox);
};

struct session {
	struct event_base *base;
	const struct session_server *server;
	struct control_session_config config;
	char **env;	      /* what envPolicy inherits */
	char *homes[3];	      /* HOME and CODEX_HOME, for file helpers; owned */
	int null_fd;	      /* -1: nothing was started yet */
	struct client client; /* the attached connection */
	uint32_t generation;  /* of the attachment */
	int64_t attached_ms;  /* for the first time, as now_ms() */
	uint32_t last_watcher;		/* its number */
	TAILQ_HEAD(, watcher) watchers; /* watcher.h */
	struct watch *watch;		/* fs/watchMissing; NULL: none */
	struct watches *watches;	/* fs/watch; NULL: none */
	struct helper_list helpers;
	struct helper *relaying; /* whose frame is under way */
	struct file_router *files;
	struct start_queue *starting;
	struct pattern_scan *scan;
	size_t held_bytes; /* of requests that these hold back */
	unsigned spools;   /* content of requests that is on disk */
	int http_program;  /* execd-http */
	struct sandboxes sandbox;
	struct placeholder_list placeholders;
	int userns; /* for it */
	struct cgroup_pool groups;
	struct record *record; /* audit.h; NULL: nobody asks */
	bool terminating;
	struct table processes;
	TAILQ_HEAD(, session_process) started; /* the same, in that order */
	uint64_t starts;
	struct recent_ids start_ids; /* carried out */
	unsigned v0_starts;
	TAILQ_HEAD(, session_process) closed; /* in the order of forgetting */
	struct session_process *oldest_kept;  /* of these, with its output */
	uint64_t output_kept;		      /* bytes of it, of all of them */
	struct rate output_rate;	      /* of all of them together */
	struct event rate_event;
	struct event forget_event;
	struct event kill_event;
	/* How the broker hears that a connection is over, and the rest. */
	void (*report)(enum control_type type, const void *payload);
	/* A file for the recording of a terminal, or -errno. Waits for it. */
	int (*open_recording)(struct slice process);
	void (*report_detached)(struct session *s, enum channel_end end);
	void (*report_unwatched)(uint32_t number, enum channel_end end);
};

/* What the broker opened for it. */
struct session_fds {
	int http_program;
	int userns;	  /* -1: none */
	int placeholders; /* likewise */
};

/* *s is all zero. */
void session_init(struct session *s, const struct session_server *server,
    struct event_base *base, const struct control_session_config *config,
    char **env, const struct session_fds *fds, const struct cgroup *cgroup);

/* What the operator permits; once, before the first client. */
void session_limit(struct session *s, const struct sandbox_limits *limits);

/* Opens what the session needs before its first process. 0, or -errno: the
 * next request may try again. */
int session_settle(struct session *s);

/* A new connection; an older one is dropped. fd is taken over. */
void session_attach(
    struct session *s, int fd, const struct control_attach *attach);

/* The connection is gone; processes go on. */
void session_detach(struct session *s, enum channel_end end);

/* The client broke a rule that ends the connection: what was answered is
 * still sent, nothing more is read. */
void client_violation(struct client *c);

/* Ends the connection once the client's last words are answered. */
void session_finish_if_answered(struct session *s);

/* Starts to end: TERM now, KILL after the grace. The program exits when the
 * last process is reaped. */
void session_terminate(struct session *s);

struct session_process *session_find(struct session *s, struct slice id);
struct session_process *session_find_v0(struct session *s, struct slice id);

/* Room for a process of that id, not yet in the session. */
struct session_process *session_process_new(struct session *s, struct slice id);
void session_add(struct session *s, struct session_process *p);
/* Keeps the beginning of argv for process/list. */
void session_note_command(struct session_process *p, char *const *argv);
void session_process_free(struct session_process *p);
/* Of session.forget_event: those whose time has come go. */
void session_process_forget_cb(evutil_socket_t fd, short what, void *arg);

/* What a client is told of a process, in whichever way. */
struct process_event {
	enum { EVENT_OUTPUT, EVENT_EXITED, EVENT_CLOSED } kind;
	uint64_t seq;
	enum stream stream; /* EVENT_OUTPUT */
	const void *data;
	size_t len;
};
void session_tell(
    struct client *c, struct session_process *p, const struct process_event *e);

/* A client's waiting requests: answered with what there is, or given up. */
void session_answer_waiters(struct client *c);
void session_drop_waiters(struct client *c);

/* For observers: is anybody told of p; does the client keep up; p is closed
 * and will be forgotten. */
bool session_is_told(const struct session_process *p);
bool session_congested(struct process *process);
void session_note_output(
    struct session_process *p, const void *data, size_t len);
void session_note_closed(struct session_process *p);

/* The observer that tells the attached client (doc/protocol.md section 7.4). */
extern const struct process_observer session_observer;

#endif
