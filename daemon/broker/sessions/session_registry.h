/* SPDX-License-Identifier: ISC */
/*
 * The session registry: which runner has which session id and owner. The runner
 * is the session. The registry only knows where to find it, and when it ends.
 */
#pragma once

#include "base.h"
#include "control.h"
#include "queue.h"
#include "table.h"
#include "watch.h"

struct identity;
struct broker;

/* Enough of an id to follow it in a log, and not enough to resume it. */
#define ID_LOG_CHARS 8

enum session_state {
	SESSION_STATE_ATTACHED,
	SESSION_STATE_DETACHED, /* until its deadline */
	/* its clients are told; then the runner is told to end */
	SESSION_STATE_LEAVING,
	/* the runner was told to end, and is killed at its deadline */
	SESSION_STATE_TERMINATING,
	SESSION_STATE_SPARE, /* a spare runner; only in registry.by_pid */
	/* adopted, and its runner has not answered yet; only in by_pid */
	SESSION_STATE_UNKNOWN,
	/* adopted, and its runner speaks another version; only in by_pid */
	SESSION_STATE_FOREIGN,
};

/* The address of a client, and of the trusted proxy that it came through, or
 * "". */
struct origin {
	const char *peer, *proxy;
};

/* The connection that has the session, or had it last. */
struct attachment {
	uint32_t conn;	      /* the front-end's number */
	uint32_t generation;  /* grows by one with each attachment */
	uint32_t reported;    /* the latest generation with a report */
	enum channel_end end; /* the report for this generation */
	bool close_asked;     /* answer CLOSE when the runner is reaped */
	bool empty; /* the connection ended, and nothing was ever started */
	/* the address of the client, or its last address */
	char peer[CONTROL_PEER_MAX];
};

/* Another connection wants the session (session_probe.c). */
struct probe {
	uint32_t number; /* 0: none does */
	uint32_t conn;	 /* the front-end's number of that connection */
	int channel_fd;	 /* owned: the runner's end of its session channel */
	struct event timer;
};

/* A connection that only watches a session. */
struct watcher {
	TAILQ_ENTRY(watcher) link; /* watchers.all */
	uint32_t conn;		   /* the front-end's number */
	uint32_t number;	   /* the runner's number for it */
	bool reported;	  /* the runner reported its end, which is `end` */
	bool close_asked; /* answer CLOSE when the runner is reaped */
	enum channel_end end;
};

/* The most watchers of one session at a time. */
#define SESSION_WATCHERS_MAX 16

struct watchers {
	TAILQ_HEAD(, watcher) all;
	unsigned count;
	uint32_t ever;
};

/* A running command, whose start is recorded and whose end is not. */
struct running_process {
	TAILQ_ENTRY(running_process) link; /* commands.processes */
	char id[];
};
TAILQ_HEAD(running_processes, running_process);

/* The commands of a session. They are known only if its runner reports them. */
struct commands {
	uint32_t running;
	struct running_processes processes; /* used by session_audit.c */
	/* for an operator; session_list.c */
	bool asked; /* the runner was, and has not answered yet */
	struct control_commands *shown; /* its answer, owned, or NULL */
};

/* For how long the session is kept without a client; session_keep.c. */
struct keep {
	uint32_t max_ms; /* at most; 0: it is not kept, but as any other */
	uint32_t ms;	 /* from its detaching, or the end of what runs */
	bool running;	 /* it is kept for a command, which has not ended */
	int64_t idle_ms; /* CLOCK_MONOTONIC: when that command had ended */
};

/* The process of the session. */
struct runner {
	pid_t pid;	      /* 0: none */
	uint32_t version;     /* of its control channel */
	struct event control; /* its control channel */
	bool hung_up;	      /* the control channel is at its end */
	int64_t asked_ms; /* when it was asked to answer; 0: it has answered */
	bool adopted;	  /* an earlier broker opened the session */
	bool audited;	  /* it reports commands */
	bool crashed;	  /* it ended by a fault of its own */
	bool killed;	  /* as a spare; its identity counts it */
	uint32_t recordings; /* recordings of terminals so far */
	/* until it is killed, because a channel ended without a report */
	struct event silent_timer;
};

/* What the session used at the latest reading; stats.c. */
struct used {
	bool has_cpu, has_memory; /* known */
	uint64_t cpu_ms;
	uint64_t before_ms; /* the part of cpu_ms under earlier brokers */
	uint64_t memory_bytes;
};

/* A report that came before the runner's answer; session_adopt.c. */
struct early_report;
STAILQ_HEAD(early_reports, early_report);

struct session {
	struct table_node by_id;  /* registry.by_id */
	struct table_node by_pid; /* registry.by_pid */
	struct event timer;	  /* of DETACHED, LEAVING and TERMINATING */
	struct event end_timer;	  /* if ends_ms */
	char id[CONTROL_SESSION_ID_MAX];
	char group[CONTROL_GROUP_MAX]; /* the name of its control group, */
	uint64_t identity_group;       /* in that of its identity */
	struct identity *identity;     /* a reference; NULL if UNKNOWN */
	int64_t opened_ms;	       /* CLOCK_MONOTONIC */
	int64_t ends_ms;	       /* likewise; 0: never */
	enum session_state state;
	int64_t detached_ms; /* since when it is DETACHED */
	int64_t until_ms;    /* and when it ends; both CLOCK_MONOTONIC */
	/* of UNKNOWN: reports that came too soon */
	struct early_reports early;
	char *end_reason;  /* owned: why the broker ends it, or NULL */
	bool asked_to_end; /* its client asked for its end */
	struct attachment attachment;
	/* the signed token of the client that attached last, owned; NULL: it
	 * showed something else */
	struct control_token *bearer;
	struct probe probe;
	struct watchers watchers;
	struct commands commands;
	struct keep keep;
	struct runner runner;
	struct used used;
};

/* An identity that had a session not long ago (session_start.c). */
#define SESSION_SPARES_MAX 16

struct spare {
	struct identity *identity; /* of the current configuration, or NULL */
	struct session *session;   /* a spare runner that waits; NULL: none */
	bool wanted; /* to be made as soon as there is nothing else to do */
	int64_t until_ms; /* CLOCK_MONOTONIC */
	struct event timer;
};

struct registry {
	struct table by_id;
	struct table by_pid;
	size_t nkept;	  /* sessions that are kept, of any state */
	int64_t last_end; /* the latest until_ms of those that are not */
	size_t owing;	  /* runners that were asked and have not answered */
	struct spare spares[SESSION_SPARES_MAX];
	size_t unknown;		  /* runners that have not answered yet */
	int64_t unknown_until_ms; /* how long they are waited for */
};

/* Returns the session of that id, whatever its identity, or NULL. */
struct session *session_of_id(const struct registry *r, const char *id);

/*
 * Starts a runner for the identity and gives it that end of a session channel,
 * which stays the caller's. Returns SESSION_OK and sets *session, or returns
 * SESSION_LIMIT or SESSION_FAILED with a sentence in reason[256].
 */
enum session_result session_open(struct broker *m, struct identity *identity,
    uint32_t conn, struct origin from, struct session **session, int channel_fd,
    char *reason);

/* Tells whether the log has room for another line about this session. */
bool session_may_log(const struct session *s);

/* Gives a detached session a new channel; with take_over, also one that is
 * attached, whose client is told by the runner. Returns SESSION_OK,
 * SESSION_UNKNOWN (also for another identity's session),
 * SESSION_SILENT, or SESSION_ATTACHED. */
enum session_result session_resume(struct broker *m,
    const struct identity *identity, const char *id, uint32_t conn,
    struct origin from, bool take_over, struct session **session,
    int channel_fd);

/*
 * The connection has ended: the session is detached and its time begins.
 * channel_ended: the front-end says that the runner hung up. Returns true with
 * *end set. Returns false if the runner is about to be reaped; then the answer
 * follows from session_reap().
 */
bool session_detach(struct broker *m, struct session *s, bool channel_ended,
    enum channel_end *end);

/* Lets a connection watch a session that is attached or detached. Returns as
 * session_resume(), or SESSION_LIMIT or SESSION_FAILED with a sentence in
 * reason[256]. */
enum session_result session_watch(struct broker *m,
    const struct identity *identity, const char *id, uint32_t conn,
    struct origin from, struct session **session, int channel_fd, char *reason);

/* The watching connection has ended. Returns as session_detach(). */
bool session_unwatch(struct broker *m, struct session *s, uint32_t conn,
    bool channel_ended, enum channel_end *end);

/* Returns the watching connection of that number, or NULL. */
struct watcher *session_watcher(struct session *s, uint32_t conn);

/* The runner reports the end of a watching connection. Returns false if the
 * report is impossible. */
bool session_watch_ended(
    struct session *s, uint32_t number, enum channel_end end);

/* Forget one watcher, or all of them, without telling anybody. */
void session_forget_watcher(struct session *s, uint32_t conn);

/* In session_events.c. Records that a channel closed without a report: the
 * runner is dying, or is killed for this soon. */
void session_note_missing(struct session *s);

/* In session_start.c. The first makes a session without a runner that is in no
 * table; it has a reference to the identity. The second starts its runner and
 * tells it everything but its client. It returns 0, and the session is in
 * registry.by_pid, or -errno with a sentence in reason[256]. */
struct session *session_new(struct identity *identity);
int session_start(struct broker *m, struct session *s, char *reason);

/* The session's control group has that number, which root chose. */
struct spawn_groups;
void session_name_group(struct session *s, const struct spawn_groups *groups);

/* Ends a SPARE session. */
void session_discard(struct registry *r, struct session *s);

/* What a runner reports, decoded. */
union runner_report {
	struct control_runner_probe probe;
	struct control_detached detached;
	struct control_unwatched unwatched;
	struct control_started started;
	struct control_exited exited;
	struct control_limited limited;
	struct control_file file;
	struct control_http http;
	struct control_network network;
	struct control_redirects redirects;
	struct control_recording_wanted recording;
	struct control_token token;
	struct control_identity identity;
	struct control_running running;
	struct control_keep_wanted keep;
	struct control_list_wanted list;
	struct control_keep_state kept;
	struct control_commands commands;
};

/* In session_adopt.c. session_adopt_all() takes over the runners of the
 * previous broker and asks each of them about its session.
 * session_adopt_report() takes what such a runner reports, and returns false if
 * it is impossible. session_adopt_forget() forgets a session that is UNKNOWN.
 * session_adopt_waits() tells whether clients still wait for other runners. */
void session_adopt_all(struct broker *m);
bool session_adopt_report(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len);
void session_adopt_forget(struct registry *r, struct session *s);

/* Another answer of a runner that was adopted. A broker that left before it
 * read its own answer leaves it to this one in the channel. Such an answer says
 * nothing new. Returns 0, or -EBADMSG if the answer is impossible. */
int session_adopt_again(struct session *s, const union runner_report *r);

bool session_adopt_waits(struct broker *m, int64_t now);

/*
 * In session_token.c. After its token has expired, a client may resume the
 * session that the token had, and nothing else. may_resume() tells whether this
 * is such a session of the identity. has_any() tells whether there is one, or a
 * runner of the identity that has not answered yet. set() takes over the token
 * of a client that attached, NULL for none, and remembers it for the next
 * broker, too. take() takes what an adopted runner remembers, and returns
 * whether it is possible. The caller owns the copy.
 */
bool session_token_may_resume(const struct broker *m, const struct session *s,
    const struct identity *identity, const struct control_token *t);
bool session_token_has_any(const struct broker *m,
    const struct identity *identity, const struct control_token *t);
void session_token_set(struct session *s, struct control_token *new);
/* How a session remembers a [token NAME]: its subject is the name. The times
 * are in seconds since 1970. 0: it never expires. */
struct control_token session_token_of(
    const char *name, int64_t expires_s, int64_t now_s);
bool session_token_is_named(const struct control_token *t);
/* The name of the [token] of the client that attached last, or NULL. */
const char *session_token_name(const struct session *s);
struct control_token *session_token_copy(const struct control_token *t);
bool session_token_take(struct session *s, const uint8_t *packet, size_t len);

/* In session_list.c: asks the runner what runs in the session, for an operator.
 * Its answer is commands.shown, until it is forgotten. Returns false if this
 * runner is not asked, because it is of an older version or at its end. */
bool session_ask_commands(struct session *s);
void session_forget_commands(struct registry *r, const char *id);
int session_commands_report(struct session *s, const union runner_report *r);

/* In session_events.c: watches the runner's control channel, which then belongs
 * to the session. Returns 0 or -errno. */
int session_control_watch(struct session *s, int fd);

/* Takes one report. */
void session_take_report(struct session *s, const uint8_t *packet, size_t len);

/* Reads what the runner has reported. */
void session_take_reports(struct session *s);

/* Tells the runner to end its processes and itself, and kills it later. The
 * first reason is kept: the client and the audit log are told it. */
void session_terminate(struct broker *m, struct session *s);
void session_end_reason(struct session *s, const char *reason);

/* The same, but the connected clients hear the reason before the commands are
 * told to end. Otherwise the last output of the commands would come first, and
 * look complete. */
void session_dismiss(struct broker *m, struct session *s);
void session_terminate_all(struct broker *m, const char *reason);

/* A child with that pid ended with that wait status; it may be no runner. */
void session_reap(struct broker *m, pid_t pid, int status);

#define SESSION_ENDED_MAX 64 /* the oldest is forgotten first */

/* Remembers the session with its end_reason. */
void session_ended_note(const struct session *s);

/* Returns why the session of that id was ended, if it belonged to the identity,
 * or NULL. */
const char *session_ended_reason(
    const struct identity *identity, const char *id);

/* --- session_send.c ----------------------------------------------------- */

/* Sends a command to the session's runner, and kills the runner if that
 * fails. */
int session_send_command(struct session *s, enum control_type type,
    const void *payload, const int *fds, size_t nfds);

/* --- session_start.c ---------------------------------------------------- */

/*
 * Spare runners. Making the runner is most of the cost of a session. So when an
 * identity gets a session, the next runner is made while there is nothing else
 * to do. It waits in its namespaces and control groups and knows everything but
 * its client. It does not count as a session, and is not recorded.
 */

/* Returns the spare that waits for the identity, which is then the caller's, or
 * NULL. */
struct session *session_spare_take(
    struct broker *m, const struct identity *identity);

/* The identity has a new session, and the next one should find a spare. */
void session_spare_want(struct broker *m, struct identity *identity);

/* Ends the identity's spare, or all, because what they were told has
 * changed. */
void session_spare_drop(struct broker *m, const struct identity *identity);
void session_spare_drop_all(struct broker *m);

/* The spare hung up or reported something, so it is ended. It is not restarted
 * before the next session, to avoid a crash loop. */
void session_spare_lost(struct broker *m, struct session *s);
void session_spare_reaped(struct broker *m, struct session *s);

/* --- account.c ----------------------------------------------------------- */

/*
 * Tells whether a session of the identity may begin, as its user's account is
 * now: 0, or -EACCES with a sentence in reason. -EINPROGRESS: it is being asked
 * about, and broker_events.account_known is called.
 */
int account_check(struct broker *m, struct identity *id, char reason[256]);

/* --- session_probe.c ----------------------------------------------------- */

/*
 * The session is attached, and another connection of its identity wants it:
 * asks whoever holds the attached connection for a sign of life.
 * broker_events.session_probed is called when there is an answer, or none in
 * time. Then the session is either free or not. Takes *fd over, which is the
 * runner's end of the other connection's channel. Returns false, without taking
 * it, if a third connection wants the session already.
 */
bool session_probe(struct broker *m, struct session *s, uint32_t conn, int *fd);

/* Ends the probe, if there is one. Returns that descriptor, which is the
 * caller's, or -1. */
int session_probe_take(struct session *s);

/* The front-end has handed the client over, so the runner is asked. */
void session_probe_runner(struct broker *m, struct session *s);

/* The runner answers. Returns 0. */
int session_probe_report(struct session *s, const union runner_report *r);

/* Asks each runner that owes no answer whether it answers. This is done when
 * somebody wants to know, so that nobody wakes the runners of idle sessions.
 * What does not answer is shown and changes nothing: a client can stop its own
 * runner. */
void session_ask_all(struct registry *r);

/* Tells whether the runner was asked so long ago and has not answered. */
#define SESSION_ANSWER_MS 1000
bool session_is_silent(const struct session *s);

/* --- session_limit.c ----------------------------------------------------- */

/*
 * How many sessions an identity may have, and for how long.
 */

/* Tells whether there is room for one more session. If not, reason[256] is a
 * sentence that says why. */
bool session_limit_room(
    const struct broker *m, const struct identity *identity, char *reason);

/* Tells whether the identity has not yet its share of the sessions that may be
 * kept, and how many of its sessions are. */
bool session_limit_keeps(
    const struct broker *m, const struct identity *identity, size_t *kept);

/* Returns how many sessions there can be, all identities together. */
size_t session_limit_places(const struct broker *m);

/* The first returns how many sessions and spares have descriptors. The
 * second returns how many descriptors so many would need, the broker's
 * own included. */
uint32_t session_limit_descriptors(void);
uint64_t session_limit_wanted(uint32_t sessions);

/* Starts the session's time if its identity has a session-deadline. */
void session_limit_time(struct session *s, int64_t opened_ms);

/* Ends a detached session in which nothing was ever started, if less than half
 * of the places are left. Its client loses nothing. */
void session_limit_end_empty(struct broker *m, struct session *s);

/* Starts the time of a DETACHED session, which ends if it is not resumed. */
void session_limit_detached(struct broker *m, struct session *s);

/*
 * exit-when-idle: an execd that runs as a job of a cluster ends when nobody has
 * had a session for a while.
 */

/* Asks the front-end, when the time has come, whether anybody is at its door.
 * Returns when to call it again (CLOCK_MONOTONIC ms) or -1. */
int64_t session_idle_expire(struct broker *m, int64_t now);

/* The front-end says that nobody is. Returns 1 if execd stops now, 0 if the
 * answer comes too late, or -EPERM if nobody asks for it. */
int session_idle_confirmed(struct broker *m);

/* --- session_keep.c ------------------------------------------------------ */

/*
 * Kept sessions. A client may ask that its session outlives detached-ttl
 * without it, within max-detached-ttl of its identity and max-kept-sessions.
 */

bool session_is_kept(const struct session *s);

/* Returns how many sessions may be kept, all identities together. */
uint32_t session_keep_places(const struct broker *m);

/* Returns when a kept session ends that is DETACHED. */
int64_t session_keep_end(const struct broker *m, const struct session *s);

/* Ends it. Whoever comes too late is told. */
void session_keep_over(struct broker *m, struct session *s);

/* Takes RUNNER_EVENT_KEEP, which it answers, or RUNNER_EVENT_KEPT. Returns 0
 * or -EBADMSG. */
int session_keep_report(struct session *s, const union runner_report *r);
int session_kept_report(struct session *s, const union runner_report *r);

/* --- session_list.c ------------------------------------------------------ */

/* Takes RUNNER_EVENT_LIST, and answers with sessions of the same identity.
 * Returns 0. */
int session_list_report(struct session *s, const union runner_report *r);

/* Returns the number of the session, which root gave it. */
uint64_t session_number(const struct session *s);

/* --- session_audit.c ----------------------------------------------------- */

/*
 * Writes sessions, and what is done in them, to the audit log. A runner is
 * trusted to speak for its own session and for no other. The broker adds to
 * whom the session belongs.
 */

/* Records an event of the session. from and reason may be NULL. Returns 0, or
 * -errno if the session must not go on without a record. */
int session_audit(struct broker *m, const struct session *s, const char *event,
    const struct origin *from, const char *reason);

/* Records and counts that a client with a valid credential got no session. The
 * answer says why. */
void session_audit_refused(struct broker *m, struct identity *identity,
    const struct origin *from, const struct control_session *answer);

/* Records that a terminal is recorded, and in which file. Returns as above. */
int session_audit_recorded(struct broker *m, const struct session *s,
    const char *process, const char *path);

/* An adopted session has a running command whose start is recorded. Returns 0
 * or -EBADMSG. */
int session_audit_running(struct session *s, const union runner_report *r);

/* Tells a new runner what it must report. */
void session_audit_configure(struct broker *m, struct session *s);

/* Take what a runner reports of its commands. Return 0, or -EBADMSG if it is
 * impossible. */
int session_audit_started(struct session *s, const union runner_report *r);
int session_audit_exited(struct session *s, const union runner_report *r);
int session_audit_limited(struct session *s, const union runner_report *r);
int session_audit_file(struct session *s, const union runner_report *r);
int session_audit_http(struct session *s, const union runner_report *r);
int session_audit_network(struct session *s, const union runner_report *r);

/* The runner is gone: records the end of every command whose end it did not
 * report. */
void session_audit_processes_ended(struct broker *m, struct session *s);

/* While records are required and cannot be written, runners are told to
 * start nothing, and the log is tried again from time to time. Returns
 * when, or -1. */
int64_t session_audit_watch(struct broker *m, int64_t now);
