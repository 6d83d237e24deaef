/* SPDX-License-Identifier: ISC */
/*
 * The operator's socket. `execd ctl` sends one line of JSON and gets one line
 * as the answer. Only root, the user of execd, and members of the configured
 * group may ask. No byte is read from anybody else.
 */
#pragma once

#include "base.h"
#include "control.h"
#include "control_spawn.h"
#include "json.h"
#include "queue.h"
#include "watch.h"

struct conf;
struct broker;

#define CTL_CLIENTS_MAX	 8     /* at once */
#define CTL_REQUEST_MAX	 4096  /* bytes, with its line end */
#define CTL_REASON_MAX	 200   /* bytes */
#define CTL_NAME_CHARS	 48    /* of a section of execd.conf */
#define CTL_ID_CHARS_MIN 4     /* the fewest characters that name a session */
#define CTL_REQUEST_MS	 5000  /* for the whole request */
#define CTL_ANSWER_MS	 5000  /* for the next piece of the answer */
#define CTL_CLIENT_MS	 60000 /* for everything */
/* sessions that are written before others have their turn */
#define CTL_SESSIONS_A_TURN 32

enum ctl_state {
	CTL_READING,   /* its request is read */
	CTL_ANSWERING, /* the answer is complete and is sent */
	CTL_ASKING,    /* runners are asked whether they answer; then */
	CTL_LISTING,   /* sessions are still added to the answer */
	CTL_HANDED,    /* another broker reads the configuration for it */
};

struct ctl_client {
	TAILQ_ENTRY(ctl_client) link; /* clients of ctl_socket.c */
	struct event source;
	struct ucred who; /* as the kernel reports it */
	enum ctl_state state;
	struct event step_timer;   /* for the current step */
	struct event client_timer; /* for everything */
	struct buf in, out;
	size_t sent; /* bytes of `out` */
	/* In the state CTL_LISTING: the ids of the sessions, owned. */
	char (*ids)[CONTROL_SESSION_ID_MAX];
	size_t nids, at;
	char shown[CONTROL_SESSION_ID_MAX]; /* of `show'; "": it is a list */
};

/* Opens the socket of the configuration. A default that cannot be
 * opened does not keep execd from starting. Returns 0, or an enum
 * exit_code after logging. */
int ctl_open(struct conf *c);

/* Serves the socket of the current configuration. */
void ctl_serve(struct broker *m);

/* The client has so much time for the current step. */
void ctl_step(struct ctl_client *c, int64_t ms);

/* Called in each turn: goes on with those who waited for answers of runners. */
void ctl_go_on(const struct broker *m);

/* Returns false while another reload is under way. It may have read the file
 * before the change that the second client means. */
bool ctl_begin_reload(void);

/* Answers the client that asked for a reload, with an enum exit_code and what
 * was logged. If all is well, ctl_leave() answers, as this broker's last act:
 * whoever asks something after that asks the next one. */
#define CTL_TOLD_MAX 8000
void ctl_answer_reload(struct broker *m, int code, const char *told);
void ctl_leave(void);

/* In ctl_client.c: `execd ctl ...`. Returns an enum exit_code. */
int ctl_main(int argc, char **argv);

/*
 * Where control sockets lie by default. The broker makes its socket there, and
 * `execd ctl` looks there. Each socket is named after the process of its execd,
 * so that several never collide.
 */

#define CTL_NAME_PREFIX	  "ctl."
#define CTL_DIRECTORY_MAX 96 /* with the NUL; a name still fits behind it */
#define CTL_PATH_MAX	  108

/* Never below /tmp, where anybody can make a socket and sandboxes write. */
#define CTL_BELOW_HOME "/.local/state/execd"

/* The directory of root's sockets, or of an ordinary user's: below
 * XDG_RUNTIME_DIR, or else HOME. Returns 0, -ENAMETOOLONG, or -ENOENT if
 * neither is set. */
int ctl_directory(char directory[CTL_DIRECTORY_MAX], bool root);

/* Checks that the directory exists, and that only its owner, root or ourselves,
 * can put a socket there. Returns 0 or -errno. */
int ctl_directory_check(const char *directory);

/* Removes sockets of an execd that is gone, as far as we may, and tells of the
 * others, unless found is NULL. */
void ctl_directory_walk(const char *directory,
    void (*found)(void *arg, const char *path), void *arg);

/*
 * Asks the execd that runs here for its status, as `execd ctl status` does.
 * Sets `path` to its socket. Returns 0 and the answer's line, whose text is not
 * to be trusted, or -errno: -ENOENT if none runs, -ENOTUNIQ if several do,
 * -EACCES or -EPERM if this user may not ask it, -ETIMEDOUT, -ECONNRESET.
 */
int ctl_ask_status(char path[CTL_PATH_MAX], struct buf *answer);

/* --- ctl_commands.c ----------------------------------------------------- */

/*
 * What the operator may ask, and how it is answered: one table. Every request
 * is recorded, also one that is refused.
 */

/* A request that was understood. Its strings belong to the document, which
 * outlives it. */
struct ctl_request {
	struct broker *broker;
	struct ctl_client *client;
	const char *command;
	char session[CONTROL_SESSION_ID_MAX]; /* as the request has it, or "" */
	char reason[CTL_REASON_MAX + 1];      /* as the request has it, or "" */
	char token[CTL_NAME_CHARS + 1];	      /* likewise */
	char identity[CTL_NAME_CHARS + 1];    /* likewise */
	bool end;			      /* of `token-revoke' */
	/* of a failure: a code for programs, and a sentence for people */
	const char *code;
	char message[8192];
};

struct ctl_command {
	const char *name;
	/* What the request must have, or must not. */
	bool session, reason, token, identity;
	bool end; /* the request may say so */
	/* Writes the members of the result. Returns 0, or what ctl_refuse()
	 * returns. */
	int (*answer)(struct ctl_request *r, struct json_writer *w);
};

/* In ctl_commands.c. Ends with a row without a name. */
extern const struct ctl_command ctl_commands[];

/* Notes the sessions that there are, for ctl_list_more(). */
void ctl_list_begin(const struct broker *m, struct ctl_client *c);

/* Both are for `show' in the state CTL_ASKING. The first tells whether the
 * runner has yet to answer. The second writes the answer, with or without what
 * the runner said. */
bool ctl_show_waits(const struct broker *m, const struct ctl_client *c);
void ctl_show_end(const struct broker *m, struct ctl_client *c);

/* In the state CTL_LISTING: writes some more sessions. Returns false at the
 * end. */
bool ctl_list_more(struct broker *m, struct ctl_client *c);

/* Carries a request out and writes the answer to c->out. */
void ctl_carry_out(
    struct broker *m, struct ctl_client *c, const char *line, size_t len);

/* Writes a failure as the answer. */
void ctl_write_error(struct buf *b, const char *code, const char *message);

/* Writes what a reload came to (ctl_answer_reload()). */
void ctl_write_reloaded(struct buf *b, int code, const char *told);
