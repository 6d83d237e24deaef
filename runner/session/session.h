/* SPDX-License-Identifier: ISC */
/*
 * The session: everything that a client could lose. It lives as long as its
 * runner; clients attach to it one after another.
 */
#pragma once

#include "base.h"
#include "channel.h"
#include "control.h"
#include "intake.h"
#include "network.h"
#include "process.h"
#include "rate.h"
#include "sandbox_report.h"
#include "table.h"

struct file_router;
struct netproxy;

/* The state of a connection's handshake; a bit mask in methods.def. */
enum session_state {
	SESSION_NEW = 1 << 0,	      /* waiting for initialize */
	SESSION_INITIALIZED = 1 << 1, /* waiting for initialized */
	SESSION_READY = 1 << 2,
	/* like READY, on a connection that only watches */
	SESSION_WATCHING = 1 << 3,
};

/* A connection, from which requests come and to which answers go. */
struct client {
	struct session *session;
	struct channel channel;
	enum session_state state;
	char peer[CONTROL_PEER_MAX];
	unsigned waiting; /* requests not answered yet */
	bool watching;
	bool stdio;
	bool input_ended; /* the client will send no more */
	bool violated;	  /* the client broke the envelope's rules */
};

/* Kinds of processes that serve beside the runner: some methods, and with
 * HELPER_NETPROXY commands. */
enum helper_kind { HELPER_FILES, HELPER_HTTP, HELPER_NETPROXY, HELPER_KINDS };
TAILQ_HEAD(helper_list, helper);

/* A connection that only watches (watcher.c). */
struct watcher;

/* A request that is answered later (report.h). */
struct waiter;

/* A process and what the session knows about it. */
struct session_process {
	struct table_node node;			  /* session.processes, by id */
	TAILQ_ENTRY(session_process) link;	  /* session.started */
	TAILQ_ENTRY(session_process) closed_link; /* session.closed */
	TAILQ_HEAD(, waiter) waiters;		  /* process/read with waitMs */
	struct process process;
	struct sandbox_report sandbox;
	struct session *session;
	struct network *network;     /* owned; NULL: it has no list of hosts */
	struct recording *recording; /* recorder.c; NULL: not recorded */
	char *limit; /* owned: the one that killed it, in words; or NULL */
	/* owned: the protected path that it could see, for which it was killed;
	 * or NULL */
	char *uncovered;
	bool unrecorded; /* ended because a record was required */
	bool v0;	 /* started by dialect_v0.c, which has ids of its own */
	/* nobody is told of it: v0, and its connection has ended; or a capture
	 * (snapshots.c) */
	bool orphaned;
	/* closed: when the id becomes free, in now_ms() time */
	int64_t forget_ms;
	size_t output_kept; /* closed: its bytes in session.output_kept */
	/* how many starts the session has had, with this one */
	uint64_t number;
	int64_t started_wall_ms; /* start in ms since 1970 */
	int64_t started_mono_ms; /* start in now_ms() time */
	char *start_id;		 /* owned; NULL: none */
	size_t start_id_len;
	/* owned: the first arguments of argv, each with its NUL */
	char *command;
	size_t command_len;
	bool command_cut; /* argv had more */
	size_t id_len;
	char id[];
};

/*
 * What serves the requests of a session's clients (methods.h). The session
 * knows connections and processes, but no methods.
 */
struct session_server {
	/* Called once, before everything else. */
	void (*begin)(struct session *s);
	/* A client sent a whole message. */
	void (*message)(struct client *c, char *text, size_t len);
	/* The attached client reads again. */
	void (*drained)(struct session *s);
	/* The attached client hung up; nobody reads its answers. */
	void (*hung_up)(struct session *s);
	/* The connection has ended, and what belongs to it must end. */
	void (*detached)(struct session *s);
	/* The program of a process that was STARTING, and is not in the session
	 * yet, runs, or does not. */
	void (*executed)(
	    struct session_process *p, const struct spawn_fault *fault);
	/* A file request was answered, or will not be. */
	void (*files_answered)(struct session *s);
	/* The connection of a client has ended that only watched. */
	void (*left)(const struct client *c);
	/*
	 * Asks to free a sandbox to make room. Returns false if a request or a
	 * handle needs it.
	 */
	bool (*give_up)(struct session *s, const struct sandbox *sandbox);
	/*
	 * A command with a list of hosts has exited: what was decided until
	 * then is told. It is closed: its list ends.
	 */
	void (*exited)(struct session_process *p);
	void (*closed)(struct session_process *p);
};

/*
 * For how long the broker keeps the session without a client (keep.c). Its
 * client may want that this time begins when its last command has ended.
 */
struct keep {
	uint32_t max_ms; /* 0: as any other session */
	uint32_t ms;
	bool while_running;
	bool running;	 /* as the broker knows it, if while_running */
	int64_t idle_ms; /* now_ms(): since when nothing runs */
};

struct session {
	struct event_base *base;
	const struct session_server *server;
	struct control_session_config config;
	char **env; /* the base environment for envPolicy */
	/* owned: HOME=, CODEX_HOME= and the path map, for file helpers */
	char *homes[4];
	int null_fd;	       /* /dev/null; -1: no process was started yet */
	struct client client;  /* the attached connection */
	uint32_t generation;   /* of the current attachment */
	int64_t attached_ms;   /* time of the first attachment, as now_ms() */
	uint32_t last_watcher; /* the number of the newest watcher */
	TAILQ_HEAD(, watcher) watchers; /* watcher.c */
	struct watch *watch;		/* fs/watchMissing; NULL: none */
	struct watches *watches;	/* fs/watch; NULL: none */
	struct helper_list helpers;
	struct helper *relaying;   /* the helper that has sent half a frame */
	struct netproxy *netproxy; /* helpers/netproxy.h; NULL: not used yet */
	struct file_router *files;
	size_t held_bytes;    /* bytes of requests that are held */
	unsigned spools;      /* spools of requests now on disk */
	int files_program;    /* descriptor of execd-files */
	int http_program;     /* of execd-http */
	int netproxy_program; /* of execd-netproxy; -1: there is none */
	int redirect_try; /* of redirect_is_possible(); -1: nothing is tried */
	int own_ports;	  /* for own_ports_take() */
	int userns;	  /* the user namespace for sandboxes; -1: none */
	struct cgroup_pool groups;
	struct record *record; /* audit.h; NULL: no reports are wanted */
	struct keep keep;
	int64_t detached_ms; /* now_ms(): since when no client is attached */
	bool terminating;
	struct table processes;
	/* all processes, in order of their start */
	TAILQ_HEAD(, session_process) started;
	uint64_t starts;
	struct recent_ids start_ids; /* ids of starts that were carried out */
	unsigned v0_starts;
	/* in the order in which they are forgotten */
	TAILQ_HEAD(, session_process) closed;
	/* the oldest in `closed` whose output is kept */
	struct session_process *oldest_kept;
	uint64_t output_kept; /* bytes of output kept by `closed` processes */
	/* limit for the output of all processes together */
	struct rate output_rate;
	struct event rate_event;
	struct event forget_event;
	struct event kill_event;
	/*
	 * Sends a report to the broker. report_detached and report_unwatched
	 * report the end of a connection.
	 */
	void (*report)(enum control_type type, const void *payload);
	/*
	 * Asks the broker for the file of a terminal's recording and waits for
	 * it. Returns the descriptor or -errno.
	 */
	int (*open_recording)(struct slice process);
	/* Asks the broker to keep the session, and waits for its answer. */
	void (*ask_keep)(const struct control_keep_wanted *wanted,
	    struct control_keep *answer);
	/* Asks it for a page of session/list, likewise. */
	void (*ask_list)(const struct control_list_wanted *wanted,
	    struct control_list *answer);
	void (*report_detached)(struct session *s, enum channel_end end);
	void (*report_unwatched)(uint32_t number, enum channel_end end);
	struct sandboxes sandbox;
	struct network_limits network_limits;
	uint64_t limits_number; /* how often session_limit() was called */
};

/* Descriptors that the broker opened for the session. */
struct session_fds {
	int http_program;
	int files_program;
	int netproxy_program; /* -1: none */
	int userns;	      /* -1: none */
};

/* *s must be all zero. */
void session_init(struct session *s, const struct session_server *server,
    struct event_base *base, const struct control_session_config *config,
    char **env, const struct session_fds *fds, const struct cgroup *cgroup);

/* Sets what the operator permits. This is called before the first client comes,
 * and again by each new broker; then it holds for the commands that start
 * later. */
void session_limit(struct session *s, const struct sandbox_limits *limits);

/* Tells whether sandboxes of this session can redirect TCP (redirect.h). */
bool session_redirects(struct session *s);

/*
 * Opens what the session needs before its first process. Returns 0 or -errno;
 * after an error the next request may try again.
 */
int session_settle(struct session *s);

/*
 * Attaches a new connection and drops an older one. Takes fd over. proxied: it
 * comes through a trusted proxy.
 */
void session_attach(struct session *s, int fd,
    const struct control_attach *attach, bool proxied);

/*
 * Another connection wants the session. Reports that the client lives, or lets
 * go of it. Without a client nothing is reported.
 */
void session_probe(struct session *s, uint32_t number);

/* Ends the connection; processes go on. */
void session_detach(struct session *s, enum channel_end end);

/*
 * The client broke a rule that ends the connection. Answers composed so far are
 * still sent; nothing more is read.
 */
void client_violation(struct client *c);

/*
 * Ends the connection once everything composed is written, if the client broke
 * a rule, or if it sends no more and waits for no answer.
 */
void session_finish_if_answered(struct session *s);

/*
 * Begins to end the session: SIGTERM now, SIGKILL after the grace time. The
 * program exits when the last process is reaped.
 */
void session_terminate(struct session *s);

struct session_process *session_find(struct session *s, struct slice id);
struct session_process *session_find_v0(struct session *s, struct slice id);

/* Allocates a process with that id; it is not in the session yet. */
struct session_process *session_process_new(struct session *s, struct slice id);
void session_add(struct session *s, struct session_process *p);
/* Keeps the first part of argv for process/list. */
void session_note_command(struct session_process *p, char *const *argv);

/* An event of a process, independent of the protocol version. */
struct process_event {
	enum { EVENT_OUTPUT, EVENT_EXITED, EVENT_CLOSED, EVENT_DECIDED } kind;
	uint64_t seq;	    /* EVENT_DECIDED has none */
	enum stream stream; /* EVENT_OUTPUT only, as data and len */
	const void *data;
	size_t len;
	const struct netproxy_decided *decided; /* EVENT_DECIDED only */
};
void session_tell(
    struct client *c, struct session_process *p, const struct process_event *e);

/*
 * End a client's waiting requests: the first answers them with what there is,
 * the second drops them.
 */
void session_answer_waiters(struct client *c);
void session_drop_waiters(struct client *c);

/* --- keep.c ------------------------------------------------------------- */

/*
 * Asks that the session is kept for so long without a client; with
 * while_running, as long as a command runs and this time from its end on. 0 and
 * false: as any other session. Returns true, or false with a sentence in
 * reason[256], and nothing has changed.
 */
bool keep_ask(struct session *s, uint64_t ms, bool while_running, char *reason);

/* Writes the members keepMs, whileRunning and maxMs of what was granted. */
void keep_write(struct json_writer *w, const struct session *s);

/* A command has begun or has closed. */
void keep_look(struct session *s);

/* Tells a new broker what was granted. */
void keep_report(const struct session *s);

/* What a session remembers of its closed processes waits for its client: the
 * first tells whether it waits, the second begins their time again. */
bool keep_remembers(const struct session *s);
void keep_attached(struct session *s);

/* --- for observers ------------------------------------------------------ */

/* Tells whether the attached client gets events of p. */
bool session_is_told(const struct session_process *p);

/* Tells whether reading from the process must pause. */
bool session_congested(struct process *process);

/* Counts and records output. */
void session_note_output(
    struct session_process *p, const void *data, size_t len);

/* p is closed and will be forgotten later. */
void session_note_closed(struct session_process *p);

/*
 * The observer that reports to the attached client (doc/protocol.md section
 * 7.4).
 */
extern const struct process_observer session_observer;

/* --- watcher.c ---------------------------------------------------------- */

/*
 * Connections that watch a session. They get the same events of processes as
 * the attached one and may ask about them, but change nothing. A watcher that
 * does not read never pauses a command; it is told later that it missed
 * something.
 */

/* Adds a watcher. Takes fd over. */
void watcher_add(
    struct session *s, int fd, const struct control_watch *command);

/* Sends an event of a process to all watchers. */
void watchers_tell(struct session_process *p, const struct process_event *e);

/*
 * Writes the messages composed so far and frees the watchers that have ended.
 * Called once in each turn of the event loop.
 */
void watchers_flush(struct session *s);

/* --- recorder.c --------------------------------------------------------- */

/*
 * Decides which terminals of the session are recorded (recording.h). If one
 * cannot be recorded, its command goes on without a recording. If the operator
 * requires recordings, the command is not started, or is ended.
 */

struct process_start_params;

/*
 * Called before a command that is to be recorded starts. Returns false if it
 * must not start; then the request was answered.
 */
bool recorder_begin(struct request *r, struct session_process *sp,
    const struct process_start_params *p, char *const argv[],
    char *const envp[]);

void recorder_output(struct session_process *sp, const void *data, size_t len);
void recorder_input(struct session_process *sp, const void *data, size_t len);
void recorder_resize(struct session_process *sp, unsigned rows, unsigned cols);
void recorder_end(struct session_process *sp);
