/* SPDX-License-Identifier: ISC */
/*
 * execd-http: serves http/request for one connection of a session, as the
 * session's user (doc/protocol.md section 12). The runner starts it with its
 * channel on CONTROL_FD. It ends with that channel, and every exchange with it.
 */
#pragma once

#include <event2/event_struct.h>

#include "http_reach.h"
#include "params.h"
#include "queue.h"
#include "request.h"

/* How many exchanges may run at once; more are refused. */
#define HTTP_EXCHANGES_MAX 256

/*
 * Limit for the bodies that are answered in one piece, in all exchanges
 * together.
 */
#define HTTP_BODIES_MAX (512ull << 20)

/* Limit for all header lines of one response together. */
#define HTTP_HEADERS_MAX (512u << 10)

#define HTTP_REDIRECTS_MAX 10

/* The request that is sent; redirects change it. It owns everything. */
struct http_message {
	CURLU *url;
	char *method;
	struct curl_slist *headers; /* "Name: value" lines for curl */
	char *body;		    /* NULL: none */
	size_t body_len;
};

/*
 * Builds *m from params and resolves valueEnvVar. Returns 0, or -EBADMSG with
 * the text for error -32602 in error[ARGS_ERROR_MAX]. Call http_message_clear()
 * in either case.
 */
int http_message_init(
    struct http_message *m, const struct http_request_params *p, char *error);
void http_message_clear(struct http_message *m);

/*
 * Changes *m to what a response with `status` redirects to. Returns 1: send
 * again; 0: the response is the result, because it is no redirect or its
 * location is no URL; -EPROTONOSUPPORT: it redirects to another scheme.
 */
int http_message_redirect(
    struct http_message *m, long status, const char *location);

/*
 * Tells whether http_message_redirect() would follow or refuse. Changes
 * nothing.
 */
bool http_message_redirects(
    const struct http_message *m, long status, const char *location);

/* One http/request, from its acceptance to its last frame. */
struct exchange {
	TAILQ_ENTRY(exchange) link; /* all exchanges */
	struct channel *channel;
	struct event_base *base;
	struct http_message message;
	struct http_reach reach;
	CURL *easy;
	struct event timeout;
	uint32_t number; /* of the request, for the answer's tag */
	struct rpc_id id;
	char *request_id; /* owned; may lack a NUL at the end */
	size_t request_id_len;
	bool stream;
	bool follow;
	bool answered; /* streamed: the headers were sent */
	bool paused;   /* the client does not read */
	bool redirecting;
	int redirects;
	long status;
	uint64_t seq; /* of the last delta */
	/* Response headers so far: names and values, each ends with a NUL. */
	struct buf headers;
	char *coding;		      /* owned; the only Content-Encoding */
	unsigned codings;	      /* how many there are */
	struct http_decoder *decoder; /* NULL: the body stays as it comes */
	size_t skip;	  /* bytes that were decoded, and come again */
	bool undecodable; /* the body is not what its headers say */
	bool in_body;	  /* later header lines are trailers */
	bool head;	  /* HEAD with a body: ends after the headers */
	bool malformed;	  /* a header line that readers interpret differently */
	char *length;	  /* owned; the first Content-Length */
	char *location;	  /* owned */
	size_t discarded; /* bytes of a redirect's body */
	/* For an answer in one piece (http_answer.c): */
	struct buf body;
	uint64_t claimed; /* bytes claimed of HTTP_BODIES_MAX */
	bool too_large;	  /* the limit was reached */
	struct buf text;  /* the answer without the body */
	size_t text_at;	  /* where the body goes in `text` */
	size_t sent;	  /* bytes of the body sent */
	bool leaving;	  /* complete, waiting to be sent */
	TAILQ_ENTRY(exchange) leaving_link;
};

/* Starts or refuses an exchange. The request is answered in either case. */
void exchange_start(struct request *r, struct event_base *base,
    const struct http_request_params *p);

/* The client reads again. */
void exchange_resume_all(void);

/* Frees the exchange without telling the client. */
void exchange_free(struct exchange *x);

/* Sends the headers of a response whose body is streamed. */
void answer_headers(struct exchange *x);

/*
 * Sends a part of a streamed body. An empty part is the end, with an error or
 * NULL.
 */
void answer_delta(
    struct exchange *x, const void *data, size_t len, const char *error);

/* CURLOPT_HEADERFUNCTION and CURLOPT_WRITEFUNCTION; arg is the exchange. */
size_t answer_on_header(char *line, size_t size, size_t n, void *arg);
size_t answer_on_body(char *data, size_t size, size_t n, void *arg);

void body_clear(struct exchange *x);

/* The body is complete. body_send_all() sends the answer in its turn. */
void body_leave(struct exchange *x);

/*
 * Sends complete answers and ends their exchanges while the client reads.
 * Returns false if some are left.
 */
bool body_send_all(void);

/* Runs curl's transfers on the event loop. */
void multi_init(struct event_base *base);
