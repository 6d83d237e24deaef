/* SPDX-License-Identifier: ISC */
/*
 * What the commands of execctl share: the client, the loop, the way to say
 * what went wrong. Exit codes are those of execctl(1).
 */
#ifndef CTL_H
#define CTL_H

#include "buf.h"
#include "execd-client.h"
#include "json.h"
#include "options.h"
#include "queue.h"

enum {
	EXIT_CTL_TIMEOUT = 124,
	EXIT_CTL_REFUSED = 125, /* the server refused, or something failed */
	EXIT_CTL_NOT_EXECUTABLE = 126,
	EXIT_CTL_NOT_FOUND = 127,
	EXIT_CTL_UNKNOWN = 254, /* the connection is lost */
	EXIT_CTL_USAGE = 255,	/* also authentication */
};

/* A descriptor that the loop polls; embedded in its owner. */
struct source {
	TAILQ_ENTRY(source) link; /* ctl.sources */
	int fd;
	short events; /* 0: not now */
	void (*ready)(void *arg);
	void *arg;
	bool added;
};
TAILQ_HEAD(source_list, source);

/* A point in time; embedded in its owner. */
struct timer {
	TAILQ_ENTRY(timer) link; /* ctl.timers */
	int64_t at_ms;		 /* of now_ms() */
	void (*fire)(void *arg); /* once; the timer is removed before */
	void *arg;
	bool added;
};
TAILQ_HEAD(timer_list, timer);

struct ctl {
	const struct parsed *parsed;
	struct execd_environment environment;
	struct execd_client *client; /* NULL before ctl_connect() */
	struct source_list sources;
	struct timer_list timers;
	bool json, quiet, verbose;
	bool ends; /* the session is its own, and nothing is left in it */
	/* Called when nobody else wants a notification. */
	void (*on_notification)(
	    void *arg, const char *method, const struct json_value *params);
	void *notification_arg;
	bool told_lost;
	struct timer lost_timer;
};

/* ctl.c */
void ctl_init(struct ctl *ctl, const struct parsed *parsed);
void ctl_clear(struct ctl *ctl);
/* One sentence on stderr; bytes that are not printable are escaped. */
void ctl_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Only with --verbose. */
void ctl_tell(const struct ctl *ctl, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Says the sentence, with --json also as an object on stdout. Returns code. */
int ctl_fail(const struct ctl *ctl, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Connects to the server that is meant; session may be NULL. 0, or the exit
 * status, and then it was said. */
int ctl_connect(struct ctl *ctl, const char *session, bool watch);
/* Says why the client is over. Returns the exit status. */
int ctl_over(struct ctl *ctl);

/* loop.c */
void source_set(struct ctl *ctl, struct source *s, int fd, short events);
void source_remove(struct ctl *ctl, struct source *s);
void timer_set(struct ctl *ctl, struct timer *t, int64_t after_ms);
void timer_remove(struct ctl *ctl, struct timer *t);
/* Waits for one event and hands it out. 0, or -ENOTCONN: the client is over
 * (sources and timers go on). */
int loop_once(struct ctl *ctl);

/* call.c: a request and its answer, waited for */
struct reply {
	int code; /* 0, or of the error */
	char *message;
	char *text; /* owned */
	struct json_doc doc;
	bool parsed;
	const struct json_value *result; /* NULL with an error */
	bool done;
};
/* Ends params that calls_begin()-like code began; *b is cleared. */
void call(struct ctl *ctl, const char *method, struct buf *params,
    unsigned int flags, struct reply *r);
void reply_clear(struct reply *r);
/* What call() has the client call; arg is the reply. */
void reply_answered(void *arg, const struct execd_answer *a);
/* Appends {"key":URI of path}; the object stays open. */
void params_path(
    struct buf *b, struct json_writer *w, const char *key, const char *path);
/* Says the error of a reply: "what: message". Returns the exit status. */
int call_failed(struct ctl *ctl, const struct reply *r, const char *what);

/* An absolute path of the server; relative ones begin at the user's home.
 * Owned. */
char *remote_path(const struct ctl *ctl, const char *path);

/* The name of a value's string, NUL-terminated, in dst. "" if it is none. */
const char *value_string(const struct json_value *v, char *dst, size_t cap);

#endif
