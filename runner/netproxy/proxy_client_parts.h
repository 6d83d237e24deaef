/* SPDX-License-Identifier: ISC */
/*
 * Shared by the files of a command's connection: proxy_client.c begins and ends
 * it, proxy_request.c reads and judges what is asked for, proxy_relay.c moves
 * the bytes.
 */
#pragma once

#include "proxy_client.h"
#include "proxy_dial.h"
#include "proxy_http.h"
#include "proxy_pipe.h"
#include "proxy_socks.h"

#define HEAD_SECONDS   30		    /* until the request is whole */
#define LINGER_SECONDS 5		    /* for a reply to arrive */
#define BUFFER_MAX     (4 * PROXY_HEAD_MAX) /* a head, and what came with it */

enum state { READING, ASKING, DIALING, READING_INSIDE, RELAYING, ENDING };

struct proxy_client {
	LIST_ENTRY(proxy_client) link; /* list.clients */
	struct proxy_list *list;
	enum state state;
	int down, up;		 /* to the command, to the host; -1: none */
	struct event down_event; /* the command sends */
	struct event out_event;	 /* the command has room for `out` */
	struct event up_event;	 /* the host sends its head */
	struct event deadline;
	struct buf in;	 /* from the command, not yet used */
	struct buf out;	 /* for the command, before the relay */
	struct buf head; /* for the host */
	struct buf back; /* from the host, not yet used */
	struct proxy_pipe to_host, to_command;
	struct proxy_dial *dial; /* DIALING */
	uint32_t ask;		 /* ASKING */
	uint16_t client_port;

	bool greeted; /* SOCKS5 */
	bool inside;  /* a tunnel to port 80 began: what comes is HTTP */
	enum netproxy_protocol protocol;
	struct host_name host;
	uint16_t port;
	char method[NETPROXY_METHOD_BYTES];
	struct proxy_verdict verdict;
	struct proxy_verdict refusal; /* of the latest address */
	uint64_t length;	      /* of the body of the request */
	bool chunked;		      /* that body has no length */
	struct proxy_chunks chunks;
	bool upgrade;  /* asked for: what follows waits for the answer */
	bool no_body;  /* the response to HEAD */
	bool upgraded; /* to another protocol: WebSocket */
	bool down_end; /* the command sends nothing more */
};

extern struct event_base *proxy_base;

/* A tunnel carries bytes of any kind: CONNECT or SOCKS5, but not to port 80. */
bool client_is_tunnel(const struct proxy_client *c);
bool client_is_socks(const struct proxy_client *c);
/* The command knows of no proxy, so it hears nothing but a reset. */
bool client_is_direct(const struct proxy_client *c);

/* Ends and frees c. client_reset() lets both sides see that this is not how it
 * should have ended. */
void client_free(struct proxy_client *c);
void client_reset(struct proxy_client *c);

void client_set_deadline(struct proxy_client *c, int seconds);
void client_set_options(int fd);

/* Reads what is there. Returns 1, 0 at the end, or -errno; -EAGAIN is no error,
 * -ENOBUFS says that the buffer is full. */
int client_read(int fd, struct buf *b);

/* Fills a decision in, and tells the runner of one. */
void client_decide(const struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason, struct netproxy_decided *d);
void client_tell(const struct netproxy_decided *d);

/* Cuts a connection that was allowed. c is gone afterwards. */
void client_cut(struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason);

/* Writes `out`. Returns false if c is gone. */
bool client_flush(struct proxy_client *c);

/* `out` is the last that the command gets. c may be gone afterwards, as after
 * all functions below. */
void client_end(struct proxy_client *c);
void client_reply_socks(struct proxy_client *c, enum socks_reply code);
void client_refuse(struct proxy_client *c, enum netproxy_source source,
    enum netproxy_reason reason);
/* Replies what is no matter of rules. */
void client_fail(
    struct proxy_client *c, int status, enum socks_reply code, const char *why);

/* proxy_request.c: takes what was read, or judges what needs no reading. */
void request_read(struct proxy_client *c);
void request_judge(struct proxy_client *c);
/* Begins to read the request in a tunnel to port 80. */
void request_read_inside(struct proxy_client *c);

/* proxy_relay.c: the host is connected. */
void relay_begin(struct proxy_client *c);
/* The request is whole. */
void relay_http(struct proxy_client *c);
/* Looks at the first record of a tunnel. Until the record is whole, nothing of
 * it goes to the host. */
void relay_check_hello(struct proxy_client *c);
/* Passes on what has come of a chunked body, and no byte behind it. */
void relay_chunks(struct proxy_client *c);
