/* SPDX-License-Identifier: ISC */
/* Shared by the files of a helper: helper.c and helper_relay.c. */
#ifndef HELPER_PARTS_H
#define HELPER_PARTS_H

#include <event2/event_struct.h>

#include "frame.h"
#include "helper.h"
#include "process_tree.h"
#include "queue.h"

#define QUEUE_MAX_BYTES (512u << 20) /* of requests, for one helper */

/* The interval at which a helper that owes an answer is checked. */
#define LOOK_SECONDS 5
/* A helper found stopped this many times in a row is replaced. */
#define LOOKS_STOPPED 2
/* A file helper that has been in one wait for so many intervals, too. */
#define LOOKS_STUCK 2

/* A request that is not answered yet. */
struct forwarded {
	STAILQ_ENTRY(forwarded) link; /* helper.waiting */
	uint32_t number;
	struct rpc_id id;
	struct spool *spool; /* sent with it; NULL: none */
	size_t at; /* with a spool: position of its frame in helper.queue */
	bool sent; /* with a spool: its frame has begun to be sent */
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
	unsigned stopped;	 /* checks in a row that found it stopped */
	unsigned stuck;		 /* and in the same wait as before */
	uint64_t switches;	 /* how often it had run by the last check */
	bool reading;
	struct buf queue; /* request frames not completely written */
	size_t queue_at;
	unsigned spools;		  /* spools of requests in `queue` */
	STAILQ_HEAD(, forwarded) waiting; /* in the order of requests */
	uint32_t number;		  /* of the newest request */
	unsigned streams; /* answers whose stream has not ended */
	uint8_t header[FRAME_TAGGED_BYTES];
	uint8_t header_len;
	bool answering; /* a file request's answer is being relayed */
	bool failed;
	struct file_note note;
};

/* The helper's name in errors, such as "the file helper". */
const char *helper_name(const struct helper *h);

/*
 * The helper died or broke the rules: waiting requests are answered with an
 * error, and the next request starts another helper. May free h.
 */
void helper_failed(struct helper *h);

/*
 * Called after a request was forwarded: begins checking whether the helper is
 * stopped by a signal, or waits for one file system. It may take any time for
 * an answer as long as it goes on.
 */
void helper_look(struct helper *h);

/* The request is answered, or never will be. Frees f. */
void helper_forwarded_free(struct helper *h, struct forwarded *f);

/* Event callbacks; arg is the helper. */
void helper_in_cb(evutil_socket_t fd, short what, void *arg);
void helper_out_cb(evutil_socket_t fd, short what, void *arg);

#endif
