/* SPDX-License-Identifier: ISC */
/*
 * What the commands of execctl share: which server they use, the connection
 * and its end, the event loop, and requests that wait for their answer.
 */
#pragma once

#include "execd-client.h"
#include "json.h"
#include "options.h"
#include "queue.h"

enum {
	EXIT_CTL_TIMEOUT = 124,
	EXIT_CTL_REFUSED = 125, /* the server refused, or something failed */
	EXIT_CTL_NOT_EXECUTABLE = 126,
	EXIT_CTL_NOT_FOUND = 127,
	EXIT_CTL_UNKNOWN = 254, /* the connection was lost */
	EXIT_CTL_USAGE = 255,	/* wrong usage, or authentication failed */
};

/* A descriptor that the loop polls; embedded in its owner. */
struct source {
	TAILQ_ENTRY(source) link; /* execctl.sources */
	int fd;
	short events; /* 0: do not poll now */
	void (*ready)(void *arg);
	void *arg;
	bool added;
};
TAILQ_HEAD(source_list, source);

/* A point in time; embedded in its owner. */
struct timer {
	TAILQ_ENTRY(timer) link; /* execctl.timers */
	int64_t at_ms;		 /* on the clock of now_ms() */
	void (*fire)(void *arg); /* called once; the timer is removed before */
	void *arg;
	bool added;
};
TAILQ_HEAD(timer_list, timer);

struct execctl {
	const struct parsed *parsed;
	struct execd_environment environment;
	struct execd_client *client; /* NULL before execctl_connect() */
	struct source_list sources;
	struct timer_list timers;
	const char *cookie; /* of the session that is resumed; NULL: none */
	bool json, quiet, verbose;
	bool steal;		  /* a session that is attached is taken over */
	unsigned int patience_ms; /* or waited for so long; 0: the default */
	bool ends; /* execctl_clear() ends the session on the server */
	struct session_end {
		bool asked, answered, done; /* done: the server ended it */
		void (*told)(void *arg); /* when it is answered; may be NULL */
		void *arg;
	} end;
	/* Called for notifications that belong to no process. May be NULL. */
	void (*on_notification)(
	    void *arg, const char *method, const struct json_value *params);
	/* Called for requests of the server; NULL: they are refused. */
	void (*on_request)(void *arg, uint64_t id, const char *method,
	    const struct json_value *params);
	/* Called when a lost connection was resumed. May be NULL. */
	void (*resumed)(void *arg);
	void *notification_arg;	 /* of all three */
	const char *client_name; /* for the server; NULL: execctl */
	bool told_lost;
	unsigned int attempts; /* to make the first connection */
	unsigned int pausing;  /* who wants the client paused */
	struct timer lost_timer;
};

/* execctl.c */
void execctl_init(struct execctl *ctl, const struct parsed *parsed);
void execctl_clear(struct execctl *ctl);
/* Asks the server to end the session with everything in it; ctl->end says what
 * it answered. Returns false, and asks nothing, if the session is not
 * execctl's own or the server cannot end it. */
bool execctl_end_session(struct execctl *ctl);
/* Writes one sentence to stderr. Control characters are escaped. */
void execctl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Like execctl_say(), but only with --verbose. */
void execctl_tell(const struct execctl *ctl, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes the sentence to stderr, and with --json also an object to stdout.
 * Returns code. */
int execctl_fail(const struct execctl *ctl, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Pauses the client as long as anybody wants it; each caller calls it in turn
 * with true and false. */
void execctl_pause(struct execctl *ctl, bool pause);
/* Connects to the server that the command line names. session may be NULL for a
 * new session. Returns 0, or the exit status after a message. */
int execctl_connect(struct execctl *ctl, const char *session, bool watch);
/* Chooses that server. Returns 0, or -errno without a message. */
int execctl_find_server(struct execctl *ctl);
/* Like execctl_connect(), but returns -ENOTCONN without a message if there is
 * no session: ctl->client says why. */
int execctl_open(struct execctl *ctl, const char *session, bool watch);
/* Takes the option of this name, if it is given. Returns 0, or the exit status
 * after a message. */
int take_duration(
    const struct execctl *ctl, const char *name, uint64_t max_ms, uint64_t *ms);
/* Reports why the client is over. Returns the exit status. */
int execctl_over(struct execctl *ctl);

/* execctl.c */
void source_set(struct execctl *ctl, struct source *s, int fd, short events);
void source_remove(struct execctl *ctl, struct source *s);
/* Blocks the signals, and makes a source of them. Returns 0, or the exit status
 * after a message. */
int signals_watch(struct execctl *ctl, struct source *s, const sigset_t *set);
/* Returns the signal that has come, or 0. */
int signals_take(const struct source *s);
/* Returns SIGINT, SIGTERM and SIGHUP. */
sigset_t signals_that_end(void);
void timer_set(struct execctl *ctl, struct timer *t, int64_t after_ms);
void timer_remove(struct execctl *ctl, struct timer *t);
/* Waits for events and handles them. Returns 0, -ENOTCONN if the client is over
 * (sources and timers still work), or another -errno of poll(2). */
int loop_once(struct execctl *ctl);

/* --- Requests that wait for their answer -------------------------------- */
struct reply {
	int code; /* 0, or the code of the error */
	char *message;
	char *text; /* owned */
	struct json_doc doc;
	bool parsed;
	const struct json_value *result; /* NULL with an error */
	bool done;
};
/* Begins an object: the parameters of a request, or a line of output. */
void object_begin(struct json_text *t);
/* Begins parameters with {"key":URI of path} and the sandbox. */
void params_begin(struct json_text *t, const char *key, const char *path);
/* Ends the JSON object, and writes it to stdout as one line. */
void object_print(struct json_text *t);
/* Ends the parameters, and sends a request that may be repeated. */
void ask(struct execctl *ctl, const char *method, struct json_text *params,
    execd_answer_fn *fn, void *arg);
/* The same of a request whose only parameter is a path. */
void ask_path(struct execctl *ctl, const char *method, const char *path,
    execd_answer_fn *fn, void *arg);
/* Ends the parameters, which may be NULL, sends the request and waits for its
 * answer. The caller frees r with reply_clear(). */
void call(struct execctl *ctl, const char *method, struct json_text *params,
    unsigned int flags, struct reply *r);
void call_path(
    struct execctl *ctl, const char *method, const char *path, struct reply *r);
void reply_clear(struct reply *r);
/* Reports the error of a reply as "what: message". Returns the exit status. */
int call_failed(struct execctl *ctl, const struct reply *r, const char *what);

/* Returns the path that a file: URI names, or NULL. The caller frees it. */
char *uri_path(const struct json_value *uri);

/* Tells whether execctl starts a program to reach the server of the URL. */
bool url_starts_program(const char *url);

/* Returns an absolute path on the server. Relative paths start at the user's
 * home. The caller frees it. */
char *remote_path(const struct execctl *ctl, const char *path);

/* Copies the string v into dst, cut to cap - 1 bytes and NUL-terminated. Copies
 * "" if v is not a string. Returns dst. */
const char *value_string(const struct json_value *v, char *dst, size_t cap);

/*
 * Server paths on the command line: :PATH, and NAME:PATH for a named server.
 */

/* Returns the part after the colon, or NULL for a path on this machine. */
const char *server_path_part(const char *argument);

/* Chooses the server of NAME:PATH before the connection. All arguments must
 * name the same one. Returns 0, or an exit status after it has printed a
 * message. */
int server_path_choose(struct execctl *ctl, const char *argument);

/* Commands that take only server paths use this. If *argument names a server,
 * that server is chosen, and the name is removed. Returns 0, or an exit status
 * after it has printed a message. */
int server_path_take(struct execctl *ctl, const char **argument);

/* --- output.c ----------------------------------------------------------- */

/*
 * Queues bytes for standard output or error. It never blocks the loop. It
 * leaves the descriptor's flags alone, because other programs share them.
 */

struct output {
	struct execctl *ctl;
	int fd;
	struct source source;
	struct buf queue;
	size_t at;		    /* bytes of queue already written */
	int failed;		    /* -errno of a write; then all is dropped */
	void (*changed)(void *arg); /* the queue shrank, or a write failed */
	void *arg;
};

void output_init(struct output *o, struct execctl *ctl, int fd,
    void (*changed)(void *arg), void *arg);
void output_clear(struct output *o);
void output_put(struct output *o, const void *data, size_t len);
size_t output_queued(const struct output *o);
/* Runs the loop until everything is written. Returns 0 or -errno. */
int output_drain(struct output *o);

/* Writes a size for a person: "999 B", "1.2 MiB". */
void size_put(struct buf *b, double bytes);

/* --- sandbox_profile.c -------------------------------------------------- */

/*
 * The sandbox profiles that execctl knows by name, and the context that a
 * request carries (doc/sandbox.md section A3).
 */

/* Appends the JSON text for a command in `cwd`, which becomes the workspace.
 * `network` allows sockets. False: there is no such profile. */
bool sandbox_profile_write(
    struct buf *b, const char *profile, const char *cwd, bool network);

/*
 * The sandbox options of execctl cp, ls and cat.
 */

/* Rows for the option tables of these commands. */
#define FILES_SANDBOX_OPTIONS                                                  \
	{ "sandbox", 's', "PROFILE", "read-only or workspace-write" },         \
	{                                                                      \
		"cwd", 'C', "DIRECTORY",                                       \
		    "the workspace of the sandbox (the home directory)"        \
	}

/* Reads --sandbox and --cwd. The server must be connected. Returns 0, or an
 * exit status after a message. */
int files_sandbox_take(struct execctl *ctl);

/* Adds the sandbox context, if there is one, to the params of a file
 * request. */
void files_sandbox_add(struct json_writer *w);

/* Returns the sandbox context as JSON text, for a command that does part of the
 * work; NULL: there is none. It stays this file's. */
const char *files_sandbox_text(void);
