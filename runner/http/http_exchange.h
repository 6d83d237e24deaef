/* SPDX-License-Identifier: ISC */
/*
 * execd-http: serves http/request for one connection of a session, as the
 * session's user (doc/protocol.md section 12). Started by the runner with its
 * channel on CONTROL_FD; ends with it, and every exchange with it.
 */
#ifndef HTTP_EXCHANGE_H
#define HTTP_EXCHANGE_H

#include <curl/curl.h>
#include <event2/event_struct.h>

#include "params.h"
#include "queue.h"
#include "request.h"

struct event_base;

/* Exchanges at once; more are refused. */
#define HTTP_EXCHANGES_MAX 256

/* Bodies that are answered in one piece, of all exchanges together. */
#define HTTP_BODIES_MAX (512ull << 20)

/* Header lines of one response, together. */
#define HTTP_HEADERS_MAX (512u << 10)

#define HTTP_REDIRECTS_MAX 10

/* What is sent; redirects change it. Everything is owned. */
struct http_message {
	CURLU *url;
	char *method;
	struct curl_slist *headers; /* "Name: value", as curl wants them */
	char *body;		    /* NULL: none */
	size_t body_len;
};

/* Builds *m out of params, valueEnvVar resolved. 0, or -EBADMSG with the
 * -32602 message in error[ARGS_ERROR_MAX]. End with http_message_clear() in
 * either case. */
int http_message_init(
    struct http_message *m, const struct http_request_params *p, char *error);
void http_message_clear(struct http_message *m);

/*
 * Points *m where a response of `status` says. 1: send again; 0: the response
 * is the result (no redirect, or a location that is no URL); -EPROTONOSUPPORT:
 * leads to another scheme.
 */
int http_message_redirect(
    struct http_message *m, long status, const char *location);

/* Would http_message_redirect() follow it, or refuse to? Changes nothing. */
bool http_message_redirects(
    const struct http_message *m, long status, const char *location);

/* One http/request, from its acceptance to its last frame. */
struct exchange {
	TAILQ_ENTRY(exchange) link; /* all exchanges */
	struct channel *channel;
	struct event_base *base;
	struct http_message message;
	CURL *easy;
	struct event timeout;
	uint32_t number; /* of the request, for the answer's tag */
	struct rpc_id id;
	char *request_id; /* owned; not NUL-terminated by promise */
	size_t request_id_len;
	bool stream;
	bool follow;
	bool answered; /* streamed: the headers were told */
	bool paused;   /* the client does not read */
	bool redirecting;
	int redirects;
	long status;
	uint64_t seq;	    /* of the last delta */
	struct buf headers; /* JSON of the response's headers so far */
	struct json_writer header_list;
	bool in_body;	  /* header lines are trailers now */
	bool head;	  /* HEAD with a body: over with the headers */
	bool malformed;	  /* a header line that no two readers agree on */
	char *length;	  /* owned; Content-Length as it came first */
	char *location;	  /* owned */
	size_t discarded; /* of a redirect's body */
	/* Answered in one piece, and then (http_body.c): */
	struct buf body;
	uint64_t claimed; /* of HTTP_BODIES_MAX */
	bool too_large;	  /* there was not so much left */
	struct buf text;  /* the answer without it */
	size_t text_at;	  /* its place */
	size_t sent;	  /* of it */
	bool leaving;	  /* all of it waits to be sent */
	TAILQ_ENTRY(exchange) leaving_link;
};

/* Starts or refuses it; the request is answered in any case. */
void exchange_start(struct request *r, struct event_base *base,
    const struct http_request_params *p);

/* The transfer is over. */
void exchange_done(struct exchange *x, CURLcode code);

/* The client reads again. */
void exchange_resume_all(void);

/* It is over, and nobody is told. */
void exchange_free(struct exchange *x);

/* The result of a request, with an empty body; x->text_at is where it ends in
 * the writer's buffer. */
void answer_write(struct exchange *x, struct json_writer *w);

/* The client is told of a response whose body is streamed. */
void answer_headers(struct exchange *x);

/* A piece of a streamed body; an empty one is its end, with an error or NULL.
 */
void answer_delta(
    struct exchange *x, const void *data, size_t len, const char *error);

/* CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION; arg is the exchange. */
size_t answer_on_header(char *line, size_t size, size_t n, void *arg);
size_t answer_on_body(char *data, size_t size, size_t n, void *arg);

/* Takes in a piece of a body that is answered in one. False: x->too_large. */
bool body_add(struct exchange *x, const void *data, size_t n);
void body_clear(struct exchange *x);

/* It is whole: the answer is sent by body_send_all() when it is its turn. */
void body_leave(struct exchange *x);

/* Sends of those, and ends their exchanges, as long as the client reads.
 * False: some are left. */
bool body_send_all(void);

/* curl's transfers on the event loop. */
void multi_init(struct event_base *base);
/* 0 or -EIO. */
int multi_add(struct exchange *x);
void multi_remove(struct exchange *x);

#endif
