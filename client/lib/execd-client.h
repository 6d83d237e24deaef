/* SPDX-License-Identifier: ISC */
/*
 * libexecd-client: a client of execd and of every other exec-server
 * (execd-protocol(7)).
 *
 * One handle is one session. It connects when it is first used, and when the
 * connection is lost it connects again, resumes the session and goes on: the
 * requests that may be repeated are sent again, each process continues behind
 * its last event, no byte is delivered twice and no command started twice.
 *
 *	struct execd_options o = { .url = "ws://127.0.0.1:8766" };
 *	struct execd_client *c = execd_client_new(&o);
 *	const char *argv[] = { "uname", "-a", NULL };
 *	struct execd_start s = { .argv = argv };
 *
 *	execd_process_start(c, &s, &events, NULL);
 *	while (!done && execd_client_run(c, -1) == 0)
 *		continue;
 *	execd_client_free(c);
 *
 * Nothing blocks but execd_client_new() (it may ask for an address) and
 * execd_client_run(). A program with an event loop of its own asks
 * execd_client_prepare() what to poll for and calls execd_client_dispatch().
 *
 * Functions return 0 or -errno. Pointers that a callback gets live until it
 * returns. A callback may start requests and processes and free processes; it
 * may not free the client or run it. One client belongs to one thread. Running
 * out of memory ends the program. With wss: and stdio: URLs the program
 * ignores SIGPIPE.
 */
#ifndef EXECD_CLIENT_H
#define EXECD_CLIENT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct execd_client;
struct execd_process;
struct json_value; /* a value of a message; see execd_json_get() */

/* --- Environments: where servers are --------------------------------------
 */

/* A named server. All owned; end with execd_environment_clear(). */
struct execd_environment {
	char *name; /* NULL: from a variable */
	char *url;
	char *token; /* NULL: none */
	char *ca_file;
	char *certificate_file;
	char *key_file;
	unsigned int connect_timeout_ms; /* 0: the default */
	unsigned int initialize_timeout_ms;
};

/*
 * The environment `name` of the file, or with NULL the one that is meant:
 * EXECD_URL, else CODEX_EXEC_SERVER_URL, else the file's default. The token is
 * that of the environment's token-file, else EXECD_TOKEN; for the variables it
 * is what execd_token_for_url() finds.
 * 0; -ENOENT: there is none; -ECANCELED: the variable says `none`; -EINVAL: a
 * line of the file; else why a file cannot be read. *error is then a
 * sentence, to be freed.
 */
int execd_environment_find(
    const char *name, struct execd_environment *out, char **error);
void execd_environment_clear(struct execd_environment *e);

/* Every environment of the file, in its order; here `token' is the name of the
 * file that holds it. */
int execd_environment_each(
    void (*visit)(
	void *arg, const struct execd_environment *e, bool is_default),
    void *arg, char **error);

/* Appends to the file, which is made if need be. The token is not written:
 * token_file names the file that holds it. -EEXIST: the name is taken. */
int execd_environment_add(const struct execd_environment *e,
    const char *token_file, bool make_default, char **error);

/* EXECD_TOKEN, else the token of the first environment of the file that has
 * exactly this URL and a token-file; NULL without either. The token is to be
 * freed. Errors as above. */
int execd_token_for_url(const char *url, char **token, char **error);

/* The first line of a file, without white space around it. */
int execd_token_read(const char *path, char **token, char **error);

/* --- The client ------------------------------------------------------------
 */

enum execd_state {
	EXECD_IDLE,	  /* nothing was asked for yet */
	EXECD_CONNECTING, /* for the first time */
	EXECD_READY,
	EXECD_RESUMING, /* the connection was lost, another is tried */
	EXECD_OVER,	/* see execd_client_failure() */
};

/* Why it is over. */
enum execd_failure {
	EXECD_FAILURE_NONE,
	EXECD_FAILURE_USAGE,	   /* the URL or a file is wrong */
	EXECD_FAILURE_UNREACHABLE, /* no connection, or not in time */
	EXECD_FAILURE_CERTIFICATE, /* TLS says this is not the server */
	EXECD_FAILURE_AUTH,	   /* the server does not accept us */
	EXECD_FAILURE_PROTOCOL,	   /* what answers is no exec-server */
	EXECD_FAILURE_REFUSED,	   /* initialize was refused */
	EXECD_FAILURE_SESSION,	   /* the session is gone: state unknown */
	EXECD_FAILURE_LOST,	   /* could not resume in time: state unknown */
};

struct execd_options {
	/* ws://HOST[:PORT][/PATH], wss://..., unix:PATH, stdio:COMMAND (run
	 * by /bin/sh; it ends with the handle) */
	const char *url;
	const char *token;	      /* Authorization: Bearer; NULL: none */
	const char *ca_file;	      /* NULL: the system's store */
	const char *certificate_file; /* PEM; NULL: none */
	const char *key_file;	      /* NULL: in certificate_file */
	const char *client_name;      /* NULL: "libexecd-client" */
	const char *session_id;	      /* resume this session; NULL: a new one */
	bool watch; /* with session_id: read only, beside the one attached */
	unsigned int connect_timeout_ms;    /* TCP, TLS, upgrade; 0: 10 s */
	unsigned int initialize_timeout_ms; /* 0: 10 s */
	unsigned int resume_timeout_ms;	    /* 0: 75 s */
	unsigned int keepalive_ms; /* silence before a ping, and after it
				    * before the connection counts as lost; 0:
				    * 20 s */
	/* Called when the state changes. May be NULL. */
	void (*on_state)(void *arg, enum execd_state state);
	/* Notifications that belong to no process. May be NULL. */
	void (*on_notification)(
	    void *arg, const char *method, const struct json_value *params);
	void *arg;
};

/* Everything in options is copied. Never NULL: what is wrong with the options
 * shows as EXECD_OVER. */
struct execd_client *execd_client_new(const struct execd_options *options);
/* Ends the connection. The session stays on the server until its time is
 * over. NULL is fine. */
void execd_client_free(struct execd_client *c);

/* Connects if that was not done yet, and waits for the session. 0, or
 * -ENOTCONN when it is over. */
int execd_client_connect(struct execd_client *c);
/* Waits for events and dispatches them, for at most timeout_ms (-1: for
 * ever). 0, or -ENOTCONN when it is over. */
int execd_client_run(struct execd_client *c, int timeout_ms);

/* For event loops: fills in what to poll(2) for, lowers *timeout_ms (-1: for
 * ever) to when dispatch wants to be called at the latest, and returns the
 * number of entries. */
#define EXECD_POLL_MAX 2
size_t execd_client_prepare(
    struct execd_client *c, struct pollfd fds[EXECD_POLL_MAX], int *timeout_ms);
/* 0, or -ENOTCONN when it is over. */
int execd_client_dispatch(
    struct execd_client *c, const struct pollfd *fds, size_t n);

/* Stops and goes on with reading: the server's commands wait. */
void execd_client_pause(struct execd_client *c, bool pause);

enum execd_state execd_client_state(const struct execd_client *c);
enum execd_failure execd_client_failure(const struct execd_client *c);
/* A sentence: why it is over, or why the last connection was lost. */
const char *execd_client_error(const struct execd_client *c);
/* NULL before the first initialize. */
const char *execd_client_session(const struct execd_client *c);
/* environmentInfo of initialize, NULL before. Lives as long as the client. */
const struct json_value *execd_client_info(const struct execd_client *c);
/* Did the server announce it as true? */
bool execd_client_can(const struct execd_client *c, const char *capability);
/* Milliseconds since the connection was lost; 0 while there is one. */
int64_t execd_client_lost_ms(const struct execd_client *c);

/* --- Requests --------------------------------------------------------------
 */

/* Besides the server's codes (execd-protocol(7)). */
#define EXECD_CODE_LOST	    (-1) /* the connection was lost before the answer */
#define EXECD_CODE_TOO_LONG (-2) /* the request is over 16 MiB; not sent */

struct execd_answer {
	int code; /* 0: result is there; else the code of the error */
	const char *message;		 /* of the error, a sentence */
	const struct json_value *result; /* NULL with an error */
	const char *text;		 /* the whole message; NULL: lost */
	size_t text_len;
	bool repeated; /* the request was sent more than once */
};

typedef void execd_answer_fn(void *arg, const struct execd_answer *answer);

enum execd_request_flags {
	/* Doing it twice is doing it once: sent again after a resume. Others
	 * get EXECD_CODE_LOST when the connection is lost. */
	EXECD_REPEAT = 1,
};

/* params is the JSON text of an object, or NULL. */
void execd_client_request(struct execd_client *c, const char *method,
    const char *params, size_t len, unsigned int flags, execd_answer_fn *fn,
    void *arg);
/* Bytes that wait to be sent. */
size_t execd_client_queued(const struct execd_client *c);

/* --- Processes -------------------------------------------------------------
 */

enum execd_stream { EXECD_STDOUT, EXECD_STDERR, EXECD_TERMINAL };

struct execd_exit {
	int code; /* the status, or 128+n for signal n */
	bool sandbox_denied;
	bool timed_out;			  /* start's timeout_ms */
	const struct json_value *details; /* whatever else the server says */
};

/* Any of them may be NULL. They come in the order of the server's numbers. */
struct execd_process_events {
	void (*started)(void *arg, const char *sandbox_type);
	void (*output)(
	    void *arg, enum execd_stream stream, const void *data, size_t len);
	/* So many events fell out of the server's retention while there was
	 * no connection. bytes: 0 if the server does not say. */
	void (*gap)(void *arg, uint64_t events, uint64_t bytes);
	/* All that the server had retained when it was asked, after an attach
	 * or a resume, has been handed out. */
	void (*caught_up)(void *arg);
	void (*exited)(void *arg, const struct execd_exit *how);
	void (*closed)(void *arg); /* the last event of a started process */
	/* It was not started, or what became of it is unknown
	 * (EXECD_CODE_LOST). The last event. */
	void (*failed)(void *arg, int code, const char *message);
};

enum execd_inherit {
	EXECD_INHERIT_CORE, /* HOME, PATH, USER, ... of the server's user */
	EXECD_INHERIT_ALL,
	EXECD_INHERIT_NONE,
};

struct execd_start {
	const char *const *argv; /* ends with NULL */
	const char *cwd;	 /* absolute; NULL: the user's home, else / */
	const char *const *env;	 /* "NAME=VALUE", ends with NULL; or NULL */
	enum execd_inherit inherit;
	bool tty;
	bool pipe_stdin;
	unsigned int rows, cols; /* of the tty; 0: the server's default */
	const char *term;	 /* TERM of the tty, unless env has one */
	uint64_t timeout_ms;	 /* 0: none. -ENOTSUP if the server has none */
	const char *sandbox; /* JSON text of a sandbox context; NULL: none */
};

/* Starts a command; events tell the rest. Connects if that was not done yet.
 * -ENOTCONN: it is over; -ENOTSUP: needs what the server does not announce;
 * -EINVAL: a cwd that is not absolute, an env without `='. Then no event
 * comes. *out lives until execd_process_free() or the client's end. */
int execd_process_start(struct execd_client *c, const struct execd_start *start,
    const struct execd_process_events *events, void *arg,
    struct execd_process **out);
/* A process that the resumed session has: all its retained output, and then
 * what follows. */
struct execd_process *execd_process_attach(struct execd_client *c,
    const char *process_id, const struct execd_process_events *events,
    void *arg);
/* Forgets it; the command goes on, its events are dropped. */
void execd_process_free(struct execd_process *p);

const char *execd_process_id(const struct execd_process *p);

/* Input, each byte once; at most EXECD_WRITE_MAX bytes, else -EMSGSIZE. fn may
 * be NULL; the `status` of its result is `accepted` if the command will get
 * the bytes. */
#define EXECD_WRITE_MAX (1u << 20)
int execd_process_write(struct execd_process *p, const void *data, size_t len,
    execd_answer_fn *fn, void *arg);
/* End of input. -ENOTSUP. */
int execd_process_close_stdin(struct execd_process *p);
/* -ENOTSUP. */
int execd_process_resize(
    struct execd_process *p, unsigned int rows, unsigned int cols);
/* name: "INT", "TERM", ... -ENOTSUP: only INT can be sent. */
int execd_process_signal(struct execd_process *p, const char *name);
/* SIGKILL to its process group; with grace_ms SIGTERM first (-ENOTSUP). */
int execd_process_terminate(struct execd_process *p, unsigned int grace_ms);

/* --- Values of messages ----------------------------------------------------
 */

/* A member of an object; NULL if there is none or v is no object. */
const struct json_value *execd_json_get(
    const struct json_value *v, const char *key);
/* First item of a list or member of an object; the one behind v. */
const struct json_value *execd_json_first(const struct json_value *v);
const struct json_value *execd_json_next(const struct json_value *v);
/* The text of a string, not NUL-terminated; NULL if it is none. */
const char *execd_json_string(const struct json_value *v, size_t *len);
/* The number, boolean, or fallback. */
int64_t execd_json_number(const struct json_value *v, int64_t fallback);
bool execd_json_bool(const struct json_value *v, bool fallback);

#endif
