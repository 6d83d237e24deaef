/* SPDX-License-Identifier: ISC */
/*
 * libexecd-client: a client of execd and of every other exec-server
 * (execd-protocol(7)).
 *
 * One handle is one session. It connects when it is first used. When the
 * connection is lost it connects again and resumes the session: it repeats the
 * requests that may be repeated, and each process continues after its last
 * event. No byte is delivered twice and no command is started twice.
 *
 * This program runs its arguments behind the first, which is a URL, as C and as
 * C++20. It is built with what pkg-config says of execd-client.
 *
 *	#include <execd-client.h>
 *	#include <stdio.h>
 *	#include <stdlib.h>
 *
 *	static int over, code = 125;
 *
 *	static void
 *	output(void *arg, enum execd_stream s, const void *data, size_t len)
 *	{
 *		fwrite(data, 1, len, s == EXECD_STDERR ? stderr : stdout);
 *	}
 *
 *	static void
 *	exited(void *arg, const struct execd_exit *how)
 *	{
 *		code = how->code;
 *	}
 *
 *	static void
 *	closed(void *arg)
 *	{
 *		over = 1;
 *	}
 *
 *	static void
 *	failed(void *arg, int why, const char *message)
 *	{
 *		fprintf(stderr, "%s\n", message);
 *		over = 1;
 *	}
 *
 *	int
 *	main(int argc, char **argv)
 *	{
 *		const struct execd_process_events events = { .output = output,
 *			.exited = exited, .closed = closed, .failed = failed };
 *		struct execd_options options = { .url = argv[1],
 *			.token = getenv("EXECD_TOKEN") };
 *		struct execd_start start = {
 *			.argv = (const char *const *)argv + 2 };
 *		struct execd_client *c;
 *		struct execd_process *p;
 *
 *		if (argc < 3)
 *			return code;
 *		c = execd_client_new(&options);
 *		if (execd_process_start(c, &start, &events, NULL, &p) < 0) {
 *			fprintf(stderr, "%s\n", execd_client_error(c));
 *			over = 1;
 *		}
 *		while (!over && execd_client_run(c, -1) == 0)
 *			continue;
 *		execd_client_free(c);
 *		return code;
 *	}
 *
 * execd_client_connect() and execd_client_run() block. execd_process_start()
 * blocks until the first initialize is answered. The first connection attempt
 * looks the host's address up and blocks for at most connect_timeout_ms. The
 * end of a stdio: connection waits up to 2 s for the command, and that of an
 * ask: lease up to 7 s for its program. Nothing else blocks. A program with its
 * own event loop asks execd_client_prepare() what to poll for and then calls
 * execd_client_dispatch().
 *
 * Functions return 0 or -errno. Pointers that a callback gets are valid until
 * it returns. A callback may start requests and processes and free processes.
 * It must not free the client or run it. One client belongs to one thread. If
 * memory runs out, the program ends. With wss:, stdio: and ask: URLs the
 * program must ignore SIGPIPE.
 */
#ifndef EXECD_CLIENT_H
#define EXECD_CLIENT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct execd_client;
struct execd_process;
struct json_value; /* a value of a message; see execd_json_get() */

/* --- Environments: where servers are --------------------------------------
 */

/* A named server. The strings are owned; free them with
 * execd_environment_clear(). */
struct execd_environment {
	char *name; /* NULL: the URL came from a variable */
	char *url;
	char *token; /* NULL: none */
	char *ca_file;
	char *certificate_file;
	char *key_file;
	unsigned int connect_timeout_ms; /* 0: the default */
	unsigned int initialize_timeout_ms;
	unsigned int silence_timeout_ms;
	char *server_key; /* as in struct execd_options; NULL: none */
};

/*
 * Finds the environment `name` in the file. With NULL it takes the server of
 * EXECD_URL, else of CODEX_EXEC_SERVER_URL, else the default of the file, else
 * /run/execd/execd.sock, else the only one of the file. The token comes from
 * the environment's token-file, else from EXECD_TOKEN. For a URL from a
 * variable the token is what execd_token_for_url() finds.
 *
 * Returns 0; -ENOENT if there is none; -ECANCELED if the variable says `none';
 * -EINVAL for a bad line in the file or a bad token file; or -errno if a file
 * cannot be read. On failure *error is a sentence that the caller frees.
 */
int execd_environment_find(
    const char *name, struct execd_environment *out, char **error);
void execd_environment_clear(struct execd_environment *e);

/* Visits every environment of the file in order. Here `token' is the name of
 * the file that holds the token. */
int execd_environment_each(
    void (*visit)(
	void *arg, const struct execd_environment *e, bool is_default),
    void *arg, char **error);

/* Appends to the file and creates it if necessary. The token itself is not
 * written: token_file names the file that holds it. -EEXIST: the name is
 * taken. */
int execd_environment_add(const struct execd_environment *e,
    const char *token_file, bool make_default, char **error);

/* Removes or renames an environment. Comments and everything else in the file
 * stay as they are; a `default' goes with the environment. Returns 0, -ENOENT
 * if there is no such environment, -EEXIST if the new name is taken, or -errno.
 */
int execd_environment_remove(const char *name, char **error);
int execd_environment_rename(
    const char *name, const char *new_name, char **error);

/* Returns FILE:LINE of a key of an environment, or NULL if it is not found. The
 * caller frees it. */
char *execd_environment_place(const char *name, const char *key);

/* Finds the token for a URL: EXECD_TOKEN, else the token of the first
 * environment that has exactly this URL and a token-file, else NULL. The caller
 * frees the token. Errors are those of execd_environment_find(). */
int execd_token_for_url(const char *url, char **token, char **error);

/* Reads a token file and removes white space at both ends. The caller frees the
 * token. -EINVAL: it is empty, too long, or others can read it. */
int execd_token_read(const char *path, char **token, char **error);

/* --- The client ------------------------------------------------------------
 */

enum execd_state {
	EXECD_IDLE,	  /* nothing was requested yet */
	EXECD_CONNECTING, /* the first connection is being made */
	EXECD_READY,
	EXECD_RESUMING, /* the connection was lost and is being made again */
	EXECD_OVER,	/* see execd_client_failure() */
};

/* Why the client is over. */
enum execd_failure {
	EXECD_FAILURE_NONE,
	EXECD_FAILURE_USAGE,	   /* the URL or a file is wrong */
	EXECD_FAILURE_UNREACHABLE, /* no connection, or not in time */
	EXECD_FAILURE_CERTIFICATE, /* the server's certificate is refused */
	EXECD_FAILURE_AUTH,	   /* the server does not accept us */
	EXECD_FAILURE_PROTOCOL,	   /* the peer is not an exec-server */
	EXECD_FAILURE_REFUSED,	   /* initialize was refused */
	EXECD_FAILURE_SESSION,	   /* the session is gone: state unknown */
	EXECD_FAILURE_LOST,	   /* not resumed in time: state unknown */
	EXECD_FAILURE_ATTACHED,	   /* another connection has the session */
	EXECD_FAILURE_TAKEN,	   /* another one took it, and it goes on */
};

struct execd_options {
	/* ws://HOST[:PORT][/PATH], wss://..., unix:PATH, stdio:COMMAND or
	 * ask:COMMAND. /bin/sh runs the command, which ends with the handle.
	 * That of ask: says which server it is (execctl(1)); it is asked once,
	 * and when it ends, so does the client. */
	const char *url;
	const char *token;   /* sent as Authorization: Bearer; NULL: none */
	const char *ca_file; /* NULL: the system's store */
	const char *certificate_file; /* PEM; NULL: none */
	const char *key_file;	      /* NULL: in certificate_file */
	/* The key that execd_server_key() found, for a wss: server. It decides
	 * in place of authorities, and neither the host's name nor the time is
	 * checked. With ca_file it does not count. NULL: none. */
	const char *server_key;
	const char *client_name; /* NULL: "libexecd-client" */
	const char *session_id;	 /* resume this session; NULL: a new one */
	bool watch;		 /* with session_id: only watch the session */
	/* With session_id: take the session over from another connection; a
	 * server that cannot refuses as without it. */
	bool take_over;
	/* The answer of ask:, then TCP, TLS and upgrade; 0: 10 s. Within this
	 * time a new session is tried again if the connection is refused, or
	 * the server answers 429 or 503 or that it is shutting down. */
	unsigned int connect_timeout_ms;
	unsigned int initialize_timeout_ms; /* 0: 10 s */
	/* How long a first connection waits for a session that is attached to
	 * another one; 0: initialize_timeout_ms. */
	unsigned int attached_timeout_ms;
	/* 0: as long as the server says that it keeps the session, up to a
	 * day, and 75 s at least */
	unsigned int resume_timeout_ms;
	/* After so long a silence of the server the connection counts as lost.
	 * After half of it a ping is sent. 0: 15 s. */
	unsigned int silence_timeout_ms;
	/* With session_id: what execd_client_cookie() said of an earlier client
	 * of that session, or NULL. */
	const char *cookie;
	/* Called when the state changes, and with EXECD_CONNECTING each time
	 * that the first connection will be tried again; then
	 * execd_client_error() says why the last attempt failed. May be
	 * NULL. */
	void (*on_state)(void *arg, enum execd_state state);
	/* Called for notifications that belong to no process. May be NULL. */
	void (*on_notification)(
	    void *arg, const char *method, const struct json_value *params);
	/* Called for requests of the server, which execd_client_answer()
	 * answers. NULL: they are answered with an error, which a server takes
	 * for a no. */
	void (*on_request)(void *arg, uint64_t id, const char *method,
	    const struct json_value *params);
	void *arg;
};

/* Copies everything in options. Never returns NULL: wrong options show as
 * EXECD_OVER. */
struct execd_client *execd_client_new(const struct execd_options *options);
/* Closes the connection and frees the client and its processes. The server
 * keeps the session until its own timeout. NULL is allowed. */
void execd_client_free(struct execd_client *c);

/* Connects to a wss: server, looks at its certificate and closes the connection
 * again; no token is sent. *key becomes the fingerprint of its public key:
 * SHA256: and the base64 of the SHA-256 of its SubjectPublicKeyInfo, without
 * padding, or NULL if no certificate was seen. Returns 0 if authorities
 * (ca_file, else the system's) vouch for it; -ENOKEY if none of them signed it;
 * -EACCES if it is refused for another reason; or -ENOTCONN if no certificate
 * was seen. After a failure *error is a sentence. The caller frees both. */
int execd_server_key(
    const struct execd_options *options, char **key, char **error);

/* Connects if necessary and waits until the session is ready. Returns 0, or
 * -ENOTCONN when the client is over. */
int execd_client_connect(struct execd_client *c);
/* Waits for events for at most timeout_ms (-1: no limit) and dispatches them.
 * Returns 0, or -ENOTCONN when the client is over. */
int execd_client_run(struct execd_client *c, int timeout_ms);

/* For event loops. Fills in what to poll(2) for and returns the number of
 * entries. *timeout_ms is the caller's own timeout for poll(2), or -1; it is
 * lowered if the client has to do something earlier. */
#define EXECD_POLL_MAX 2
size_t execd_client_prepare(
    struct execd_client *c, struct pollfd fds[EXECD_POLL_MAX], int *timeout_ms);
/* Returns 0, or -ENOTCONN when the client is over. */
int execd_client_dispatch(
    struct execd_client *c, const struct pollfd *fds, size_t n);

/* Sends the answer to a request of the server. The caller gives a whole message
 * of JSON-RPC. Without a connection the answer is dropped, because the request
 * has ended with the connection. */
void execd_client_answer(
    struct execd_client *c, const char *message, size_t len);

/* Stops or continues reading. While paused, the server's commands are slowed
 * down by the full socket. */
void execd_client_pause(struct execd_client *c, bool pause);

/* The session was ended (session/end): when its connection ends, the client is
 * over, and resumes nothing. */
void execd_client_ended(struct execd_client *c);

enum execd_state execd_client_state(const struct execd_client *c);
enum execd_failure execd_client_failure(const struct execd_client *c);
/* Returns a sentence: why the client is over, or why the last connection was
 * lost. */
const char *execd_client_error(const struct execd_client *c);
/* Returns the key of the server, which was compared with options.server_key, or
 * NULL if none was. */
const char *execd_client_server_key(const struct execd_client *c);
/* Returns the session's id, or NULL before the first initialize of a new
 * session. */
const char *execd_client_session(const struct execd_client *c);
/* Returns the cookie NAME=VALUE that a proxy gave this session, or NULL. It is
 * sent with each resume, so that the proxy finds the session's host again. */
const char *execd_client_cookie(const struct execd_client *c);
/* Returns environmentInfo of the answer to initialize, or NULL before. The next
 * connection of the client brings another and frees this one. So the pointer is
 * valid until the program waits for events or calls execd_client_connect().
 * Copy what is needed longer. */
const struct json_value *execd_client_info(const struct execd_client *c);
/* Returns for how long at most the server keeps the session without a client,
 * if it was asked to (session/keep), as the last initialize said; or 0. */
int64_t execd_client_kept_ms(const struct execd_client *c);
/* Tells whether the server announced the capability as true. */
bool execd_client_can(const struct execd_client *c, const char *capability);
/* Milliseconds since the connection was lost; 0 while it is up. */
int64_t execd_client_lost_ms(const struct execd_client *c);
/* Milliseconds for which a lost connection is tried to be resumed. */
unsigned int execd_client_resume_ms(const struct execd_client *c);

/* --- Requests --------------------------------------------------------------
 */

/* Codes in addition to the server's (execd-protocol(7)). */
#define EXECD_CODE_LOST	    (-1) /* the connection was lost before the answer */
#define EXECD_CODE_TOO_LONG (-2) /* the request is over 16 MiB; not sent */

struct execd_answer {
	int code;	     /* 0: there is a result; else the error's code */
	const char *message; /* the error as a sentence */
	const struct json_value *result; /* NULL with an error */
	const char *text; /* the whole message; NULL: there is none */
	size_t text_len;
	bool repeated; /* the request was sent more than once */
};

typedef void execd_answer_fn(void *arg, const struct execd_answer *answer);

enum execd_request_flags {
	/* Set it if doing the request twice has the same effect as once. The
	 * request is then repeated after a resume. Without it the request fails
	 * with EXECD_CODE_LOST when the connection is lost. */
	EXECD_REPEAT = 1,
};

/* Calls a method. `params` is the JSON text of an object, or NULL. The client
 * copies it. `fn` gets the answer. */
void execd_client_request(struct execd_client *c, const char *method,
    const char *params, size_t len, unsigned int flags, execd_answer_fn *fn,
    void *arg);
/* Returns how many bytes wait to be sent. */
size_t execd_client_queued(const struct execd_client *c);

/* --- Processes -------------------------------------------------------------
 */

enum execd_stream { EXECD_STDOUT, EXECD_STDERR, EXECD_TERMINAL };

struct execd_exit {
	int code; /* the status, or 128+n for signal n */
	bool sandbox_denied;
	bool timed_out;			  /* timeout_ms of the start ended it */
	const struct json_value *details; /* all the server says; NULL: none */
};

/* Each callback may be NULL. They are called in the order of the server's event
 * numbers. */
struct execd_process_events {
	void (*started)(void *arg, const char *sandbox_type);
	void (*output)(
	    void *arg, enum execd_stream stream, const void *data, size_t len);
	/* The server no longer retained this many events after the connection
	 * was lost. bytes is 0 if the server does not say. */
	void (*gap)(void *arg, uint64_t events, uint64_t bytes);
	/* After an attach or a resume: everything that the server retained when
	 * it was asked has been delivered. */
	void (*caught_up)(void *arg);
	void (*exited)(void *arg, const struct execd_exit *how);
	void (*closed)(void *arg); /* the last event of a started process */
	/* The process was not started, or its state is unknown
	 * (EXECD_CODE_LOST). This is the last event. */
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
	/* Its modes, encoded as in RFC 4254 section 8; NULL: the server's
	 * default, as with a server that cannot set them. */
	const void *modes;
	size_t modes_len;
	uint64_t timeout_ms; /* 0: none; needs the server's support */
	/* Its output waits while there is no connection, however long, so that
	 * none is lost. A server that cannot do that keeps the newest. */
	bool wait_output;
	/* None that was sent is lost with the connection: the command waits
	 * when about 1 MiB has not arrived. A server that cannot do that keeps
	 * the newest. Not with wait_output. */
	bool hold_output;
	const char *sandbox; /* JSON text of a sandbox context; NULL: none */
	/* The patterns of hosts that are all of the network the command has,
	 * ends with NULL; NULL: as the sandbox says. Needs the server's
	 * support. */
	const char *const *allow_hosts;
};

/* Starts a command; its outcome comes as events. Waits for a connection if
 * there was none yet. Returns 0. On failure no event comes: -ENOTCONN if the
 * client is over; -ENOTSUP if the server does not announce what is needed;
 * -EINVAL for a cwd that is not absolute or an env entry without `='; -EILSEQ
 * for a string that is not UTF-8. *out lives until execd_process_free() or
 * execd_client_free(). */
int execd_process_start(struct execd_client *c, const struct execd_start *start,
    const struct execd_process_events *events, void *arg,
    struct execd_process **out);
/* Passes a start on for somebody else, who chose the id: params is the JSON
 * text of the params of process/start, with that id in them. fn gets the answer
 * before any event follows from it, also an error. The result lives as long as
 * that of execd_process_start(). */
struct execd_process *execd_process_pass(struct execd_client *c, const char *id,
    const char *params, size_t len, const struct execd_process_events *events,
    void *arg, execd_answer_fn *fn, void *fn_arg);
/* Attaches to a process of the resumed session. Delivers all its retained
 * output and then its live events. The result lives as long as that of
 * execd_process_start(). */
struct execd_process *execd_process_attach(struct execd_client *c,
    const char *process_id, const struct execd_process_events *events,
    void *arg);
/* Opens a byte stream to a port on the loopback of the sandbox in which the
 * process `of` runs, or on that of the server's host if it shares that (NULL:
 * the host's). execd_process_write() sends, and what comes is its output. It is
 * closed when the other side has hung up. Returns 0; -ENOTSUP: the server does
 * not announce processForward; -EINVAL: not a port; -ENOTCONN: the client is
 * over. */
int execd_process_forward(struct execd_client *c, const char *of,
    unsigned int port, const struct execd_process_events *events, void *arg,
    struct execd_process **out);
/* Frees the handle and drops its events; the command continues. NULL is
 * allowed. */
void execd_process_free(struct execd_process *p);

const char *execd_process_id(const struct execd_process *p);
/* Returns the bytes of /dev/shm in the sandbox of a process that was started;
 * 0: unknown, or it has none of its own. */
int64_t execd_process_shm_bytes(const struct execd_process *p);

/* Writes input; each byte arrives once. At most EXECD_WRITE_MAX bytes, else
 * -EMSGSIZE. The data is copied. fn may be NULL. In its result `status` is
 * `accepted` if the command will get the bytes. */
#define EXECD_WRITE_MAX (1u << 20)
int execd_process_write(struct execd_process *p, const void *data, size_t len,
    execd_answer_fn *fn, void *arg);
/* Ends the input. -ENOTSUP: the server cannot do it. */
int execd_process_close_stdin(struct execd_process *p);
/* Sets the size of the terminal. -ENOTSUP: the server cannot do it. */
int execd_process_resize(
    struct execd_process *p, unsigned int rows, unsigned int cols);
/* Sends a signal: "INT", "TERM", ... -ENOTSUP: the server can send only INT.
 * -EINVAL: this is not a signal's name. */
int execd_process_signal(struct execd_process *p, const char *name);
/* Sends SIGKILL to the process group; with grace_ms it sends SIGTERM first.
 * -ENOTSUP: the server knows no grace. */
int execd_process_terminate(struct execd_process *p, unsigned int grace_ms);

/* --- Values of messages ----------------------------------------------------
 */

/* Returns a member of an object, or NULL if there is none or v is not an
 * object. */
const struct json_value *execd_json_get(
    const struct json_value *v, const char *key);
/* The first function returns the first item of a list, or the first member of
 * an object. The second one returns what follows v. Both return NULL if there
 * is none. */
const struct json_value *execd_json_first(const struct json_value *v);
const struct json_value *execd_json_next(const struct json_value *v);
/* Returns the text of a string, without a NUL at its end; NULL if v is not a
 * string. */
const char *execd_json_string(const struct json_value *v, size_t *len);
/* Return the number or boolean of v, or fallback if v is something else. */
int64_t execd_json_number(const struct json_value *v, int64_t fallback);
bool execd_json_bool(const struct json_value *v, bool fallback);

#ifdef __cplusplus
}
#endif

#endif
