/* SPDX-License-Identifier: ISC */
/*
 * A helper, for the files that make it: tls_helper.c and helper_relay.c.
 */
#ifndef HELPER_PARTS_H
#define HELPER_PARTS_H

#include <event2/event_struct.h>

#include "frame.h"
#include "helper.h"
#include "queue.h"
#include "reaper.h"

#define QUEUE_MAX_BYTES (512u << 20) /* of requests, for one helper */

/* How often a helper that owes an answer is looked at. */
#define LOOK_SECONDS 5
/* A helper that is found stopped as often as this in a row is replaced. */
#define LOOKS_STOPPED 2

/* A request whose answer is due. */
struct forwarded {
	STAILQ_ENTRY(forwarded) link; /* helper.waiting */
	uint32_t number;
	struct rpc_id id;
	struct spool *spool;   /* goes with it; NULL: none */
	size_t at;	       /* spool: its frame in helper.queue, */
	bool sent;	       /* until the frame has begun to go */
	struct file_note note; /* HELPER_FILES */
};

struct helper {
	TAILQ_ENTRY(helper) link; /* session.helpers */
	enum helper_kind kind;
	struct sandbox *sandbox; /* it runs in; NULL: none */
	struct session *session;
	struct reaper_watch watch;
	int fd;
	struct event in_event, out_event;
	struct event look_event; /* pending while it owes an answer */
	unsigned stopped;	 /* looks in a row that found it stopped */
	bool reading;
	struct buf queue; /* request frames not written yet */
	size_t queue_at;
	unsigned spools;		  /* of requests in it */
	STAILQ_HEAD(, forwarded) waiting; /* in the order of requests */
	uint32_t number;		  /* of the newest request */
	unsigned streams;		  /* answered, but not at their end */
	uint8_t header[FRAME_TAGGED_BYTES];
	uint8_t header_len;
	bool answering; /* a file request; what the answer says: */
	bool failed;
	struct file_note note;
};

/* "the file helper", in errors. */
const char *helper_name(const struct helper *h);

/* It died on its own, or said what it must not: whoever waits is told, and
 * the next request starts another. May free h. */
void helper_failed(struct helper *h);

/* A request was handed on. A helper may take as long as it needs for the
 * answer, but not be stopped meanwhile. */
void helper_look(struct helper *h);

/* It is answered, or will not be. Frees f. */
void helper_forwarded_free(struct helper *h, struct forwarded *f);

/* Of its events; arg is the helper. */
void helper_in_cb(evutil_socket_t fd, short what, void *arg);
void helper_out_cb(evutil_socket_t fd, short what, void *arg);

#endif
