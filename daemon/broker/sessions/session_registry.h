/* SPDX-License-Identifier: ISC */
/*
 * The session registry: which runner has which session id and owner. The
 * runner is the session; this is only where to find it, and when it ends.
 */
#ifndef SESSION_REGISTRY_H
#define SESSION_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control.h"
#include "event_source.h"
#include "queue.h"
#include "table.h"

struct identity;
struct broker;

/* Enough of an id to follow it in a log, not enough to resume it. */
#define ID_LOG_CHARS 8

enum session_state {
	SESSION_STATE_ATTACHED,
	SESSION_STATE_DETACHED, /* until its deadline */
	SESSION_STATE_LEAVING,	/* its clients are told; then it is told to end
				 */
	SESSION_STATE_TERMINATING, /* told to end; killed at its deadline */
	SESSION_STATE_SPARE,	   /* nobody's yet: only in registry.by_pid */
	SESSION_STATE_UNKNOWN, /* likewise: its runner was asked who it is, */
	SESSION_STATE_FOREIGN, /* likewise: and speaks another version */
};

/* Where a client is, and the trusted proxy that it came through, or "". */
struct origin {
	const char *peer, *proxy;
};

/* The connection that has a session, or had it last. */
struct attachment {
	uint32_t conn;	      /* the front-end's number */
	uint32_t generation;  /* counts up with each */
	uint32_t reported;    /* the newest generation with a report */
	enum channel_end end; /* reported for this generation */
	bool close_asked;     /* answer CLOSE when the runner is reaped */
	bool empty;	      /* it left, and nothing was ever started */
	/* where its client is, or was */
	char peer[CONTROL_PEER_MAX];
};

/* A connection that only watches a session. */
struct watcher {
	TAILQ_ENTRY(watcher) link; /* watchers.all */
	uint32_t conn;		   /* the front-end's number */
	uint32_t number;	   /* the runner's name of it */
	bool reported;		   /* the runner ended it, as `end` says */
	bool close_asked;	   /* answer CLOSE when the runner is reaped */
	enum channel_end end;
};

/* At a time, of one session. */
#define SESSION_WATCHERS_MAX 16

struct watchers {
	TAILQ_HEAD(, watcher) all;
	unsigned count;
	uint32_t ever;
};

/* A command whose start is on record and whose end is not. */
struct running_process {
	TAILQ_ENTRY(running_process) link; /* commands.processes */
	char id[];
};
TAILQ_HEAD(running_processes, running_process);

/* Those of a session; known only where its runner reports them. */
struct commands {
	uint32_t running;
	struct running_processes processes; /* session_audit.c */
};

/* The process that is the session. */
struct runner {
	pid_t pid;		     /* 0: none */
	struct event_source control; /* its control channel */
	bool hung_up;		     /* which is at its end */
	bool adopted;		     /* a broker before this one opened it */
	bool audited;		     /* it reports commands */
	bool crashed;		     /* it had a fault */
	bool failed;		     /* it did not end as it should */
	uint32_t recordings;	     /* recordings of terminals, ever */
	struct placeholder_file
	    *placeholders; /* the list of what it makes on the disk */
	TAILQ_ENTRY(session) silent_link; /* registry.silent, if silent_ms */
	int64_t silent_ms; /* CLOCK_MONOTONIC: killed then, for a channel ended
			    * without a report; -1: that was done */
};

/* What a runner said before it said who it is; session_adopt.c. */
struct early_report;
STAILQ_HEAD(early_reports, early_report);

struct session {
	struct table_node by_id;  /* registry.by_id */
	struct table_node by_pid; /* registry.by_pid */
	TAILQ_ENTRY(session)
	link; /* registry.detached, .leaving, .terminating */
	TAILQ_ENTRY(session) end_link; /* registry.limited, if ends_ms */
	char id[CONTROL_SESSION_ID_MAX];
	char group[CONTROL_GROUP_MAX]; /* name of its control group */
	struct identity *identity;     /* a reference; UNKNOWN: NULL */
	int64_t opened_ms;	       /* CLOCK_MONOTONIC */
	int64_t ends_ms;	       /* likewise; 0: never */
	enum session_state state;
	union {
		int64_t detached_ms;	    /* DETACHED since then */
		int64_t deadline_ms;	    /* LEAVING, TERMINATING */
		struct early_reports early; /* UNKNOWN: what came too soon */
	};
	char *end_reason;  /* owned: why we end it, or NULL */
	bool asked_to_end; /* by its client */
	struct attachment attachment;
	struct watchers watchers;
	struct commands commands;
	struct runner runner;
};

TAILQ_HEAD(session_list, session);

/* session_spare.h: an identity that had a session not long ago. */
#define SESSION_SPARES_MAX 16

struct spare {
	struct identity *identity; /* of the configuration in force, or NULL */
	struct session *session;   /* it waits; NULL: there is none */
	bool wanted;		   /* as soon as nothing else is to be done */
	int64_t until_ms;	   /* CLOCK_MONOTONIC */
};

struct registry {
	struct table by_id;
	struct table by_pid;
	struct session_list detached; /* in order of detached_ms */
	struct session_list leaving;  /* in order of deadline_ms */
	struct session_list terminating;
	int64_t rest_until_ms;	     /* of those detached, no more end before */
	struct session_list limited; /* in order of ends_ms */
	struct session_list silent;  /* in order of silent_ms */
	struct spare spares[SESSION_SPARES_MAX];
	size_t unknown;		  /* runners that have yet to answer, */
	int64_t unknown_until_ms; /* and how long they are waited for */
};

void registry_init(struct registry *r);

/* Whosever it is; or NULL. */
struct session *session_of_id(const struct registry *r, const char *id);

/*
 * Starts a runner for the identity, with that end of a session channel, which
 * stays the caller's. SESSION_OK and *session is set, or SESSION_LIMIT /
 * SESSION_FAILED with a sentence in reason[256].
 */
enum session_result session_open(struct broker *m, struct identity *identity,
    uint32_t conn, struct origin from, struct session **session, int channel_fd,
    char *reason);

/* Is there room in the log for another line about this session's life? */
bool session_may_log(const struct session *s);

/* Why the identity has no such session: SESSION_SILENT for one whose runner has
 * not answered yet, else SESSION_UNKNOWN. */
enum session_result session_missing_result(
    const struct registry *r, const struct identity *identity, const char *id);

/* Gives a detached session a new channel. SESSION_OK, SESSION_UNKNOWN (also
 * for another identity's), SESSION_SILENT, or SESSION_ATTACHED. */
enum session_result session_resume(struct broker *m,
    const struct identity *identity, const char *id, uint32_t conn,
    struct origin from, struct session **session, int channel_fd);

/*
 * The connection is over: the session is detached and its time runs.
 * channel_ended: the front-end says that the runner hung up. Returns
 * true with *end set, or false when the runner is about to be reaped: then
 * the answer follows from session_reap().
 */
bool session_detach(struct broker *m, struct session *s, bool channel_ended,
    enum channel_end *end);

/* Lets a connection watch a session that is attached or detached: as
 * session_resume(), or SESSION_LIMIT / SESSION_FAILED with a sentence in
 * reason[256]. */
enum session_result session_watch(struct broker *m,
    const struct identity *identity, const char *id, uint32_t conn,
    struct origin from, struct session **session, int channel_fd, char *reason);

/* The watching connection is over; as session_detach(). */
bool session_unwatch(struct broker *m, struct session *s, uint32_t conn,
    bool channel_ended, enum channel_end *end);

/* The watching connection of that number, or NULL. */
struct watcher *session_watcher(struct session *s, uint32_t conn);

/* What the runner says of one of them. False: it cannot be. */
bool session_watch_ended(
    struct session *s, uint32_t number, enum channel_end end);

/* One, or every one, is forgotten, without a word to anybody. */
void session_forget_watcher(struct session *s, uint32_t conn);
void session_forget_watchers(struct session *s);

/* session_missing.c: a channel of it ended without a report, so the runner is
 * dying, or is killed for it soon; no more of that; kills what is due and
 * returns the next deadline or -1. */
void session_note_missing(struct registry *r, struct session *s);
void session_forget_missing(struct registry *r, struct session *s);
int64_t session_missing_expire(struct registry *r, int64_t now);

/* session_start.c: one without a runner, which no table has; the identity is
 * referenced. Then its runner, told all but who is attached: 0 and it is in
 * registry.by_pid, or -errno with a sentence in reason[256]. */
struct session *session_new(struct identity *identity);
int session_start(struct broker *m, struct session *s, char *reason);

/* A session that the broker before has started is in the control group of that
 * name: no session to come gets a number that is not larger. Root says how many
 * there were when this broker began, and the one before made others since. */
void session_note_group(const char *name);

/* Ends one that is SPARE. */
void session_discard(struct registry *r, struct session *s);

/* session_adopt.c: takes over the runners of the broker before this one, each
 * of which is asked how its session stands. What such a one said;
 * false: it cannot be. One that is UNKNOWN goes. How long to wait for
 * the others before a client is let in, or -1. */
void session_adopt_all(struct broker *m);
bool session_adopt_report(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len);
void session_adopt_forget(struct registry *r, struct session *s);
int64_t session_adopt_expire(struct broker *m, int64_t now);

/* session_events.c: session.control has something. */
void session_control_ready(struct event_source *source, uint32_t events);

/* One report. */
void session_take_report(struct session *s, const uint8_t *packet, size_t len);

/* For session_watch.c: the session of that id that can be reached and is the
 * identity's, or NULL; a command to its runner; what the runner said. */
struct session *session_find(
    struct broker *m, const struct identity *identity, const char *id);
int session_send_command(struct session *s, enum control_type type,
    const void *payload, const int *fds, size_t nfds);
void session_take_reports(struct session *s);

/* Tells the runner to end its processes and itself, and kills it later. The
 * first reason counts: its client and the audit log are told it. */
void session_terminate(struct broker *m, struct session *s);
void session_end_reason(struct session *s, const char *reason);

/* The same, and who is connected to it hears the reason before commands are
 * told to end: their last words would come first, and look like all of it. */
void session_dismiss(struct broker *m, struct session *s);
void session_terminate_all(struct broker *m);

/* A child of that pid ended with that wait status. False: not a runner. */
bool session_reap(struct broker *m, pid_t pid, int status);

/* Ends what is due. Returns the next deadline (CLOCK_MONOTONIC ms) or -1. */
int64_t session_expire(struct broker *m, int64_t now);

#endif
