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
#include "control.h"
#include "file_router.h"
#include "groups.h"
#include "process.h"
#include "queue.h"
#include "sandbox/sandbox.h"
#include "table.h"

struct event_base;

/* Where the handshake of the attached connection stands; a mask in
 * methods.def. */
enum session_state {
	SESSION_NEW = 1 << 0,	      /* waiting for initialize */
	SESSION_INITIALIZED = 1 << 1, /* waiting for initialized */
	SESSION_READY = 1 << 2,
};

/* Processes beside the runner that serve some methods. */
enum helper_kind { HELPER_FILES, HELPER_HTTP, HELPER_KINDS };
TAILQ_HEAD(helper_list, helper);

/* A request that is answered later; dies with its connection. */
struct waiter;

/* A process and what the session keeps about it. */
struct session_process {
	struct table_node node;			  /* session.processes, by id */
	TAILQ_ENTRY(session_process) closed_link; /* session.closed */
	TAILQ_HEAD(, waiter) waiters;		  /* process/read with waitMs */
	struct process process;
	struct session *session;
	int64_t forget_ms; /* closed: when the id is free again */
	size_t id_len;
	char id[];
};

struct session {
	struct event_base *base;
	struct control_session_config config;
	char **env; /* what envPolicy inherits */
	int null_fd;
	struct channel channel;
	enum session_state state; /* of the attached connection */
	uint32_t generation;	  /* of the attachment */
	char peer[CONTROL_PEER_MAX];
	unsigned waiting;    /* requests without answer */
	struct watch *watch; /* fs/watchMissing; NULL: none */
	struct helper_list helpers;
	struct helper *relaying; /* whose frame is under way */
	struct file_router files;
	int http_program; /* execd-http */
	struct sandbox sandbox;
	struct group_pool groups;
	bool input_ended; /* the client said all it will say */
	bool violated;	  /* the client broke the envelope */
	bool terminating;
	struct table processes;
	TAILQ_HEAD(, session_process) closed; /* in the order of forgetting */
	struct event forget_event;
	struct event kill_event;
	/* How the monitor hears that a connection is over, and the rest. */
	void (*report)(enum control_type type, const void *payload);
	void (*report_detached)(struct session *s, enum channel_end end);
};

void session_init(struct session *s, struct event_base *base,
    const struct control_session_config *config, char **env, int door,
    const struct cgroup *cgroup);

/* A new connection; an older one is dropped. fd is taken over. */
void session_attach(
    struct session *s, int fd, const struct control_attach *attach);

/* The connection is gone; processes go on. */
void session_detach(struct session *s, enum channel_end end);

/* The client broke a rule that ends the connection: what was answered is
 * still sent, nothing more is read. */
void session_violation(struct session *s);

/* Ends the connection once the client's last words are answered. */
void session_finish_if_answered(struct session *s);

/* Starts to end: TERM now, KILL after the grace. The program exits when the
 * last process is reaped. */
void session_terminate(struct session *s);

struct session_process *session_find(struct session *s, struct slice id);

/* Room for a process of that id, not yet in the session. */
struct session_process *session_process_new(struct session *s, struct slice id);
void session_add(struct session *s, struct session_process *p);
void session_process_free(struct session_process *p);

/* The observer that tells the attached client (PROTOCOL.md section 7.4). */
extern const struct process_observer session_observer;

#endif
