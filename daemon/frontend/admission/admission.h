/* SPDX-License-Identifier: ISC */
/*
 * The way in of an accepted socket: caps and penalties of its source, then a
 * slot for those that have shown no credential yet, or a place in the queue
 * (fairness.h). Whoever waits in vain for as long as the pre-auth deadline, or
 * has no place, is told to come again.
 */
#ifndef ADMISSION_H
#define ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "control.h"
#include "fairness.h"
#include "source.h"

/* How many connections there are descriptors for. Set once, before the first
 * connection. */
extern uint32_t admission_connections_max;

struct visitor {
	struct fair_waiter waiter;
	TAILQ_ENTRY(visitor) age; /* the oldest first */
	struct source *source;	  /* NULL: exempt, or no IP address */
	uint32_t listener;	  /* the broker's number */
	bool tls;
	int fd; /* owned */
	int64_t since_ms;
	char peer[CONTROL_PEER_MAX];
};

/* What is behind the way in. */
struct admission_target {
	/* The visitor's connection begins. False: its listener is gone; the
	 * descriptor is still the caller's. */
	bool (*begin)(const struct visitor *v, bool slot);
	unsigned (*count)(void); /* of connections */
};

/* Once, before the first visitor. */
void admission_init(const struct admission_target *target);

/* Of a listener: v is copied, its descriptor taken over. It begins now or
 * later, or is refused. */
void admission_take(const struct visitor *v, const struct sockaddr *from);

/* Says 503 if there is a short way to, and closes the descriptor. */
void admission_refuse(int fd, bool tls, int64_t wait_ms);

/* A slot is given back: another may come in. */
void admission_leave(struct source *source);

/* The configuration is another one. */
void admission_reload(void);

/* Nobody comes in any more. */
void admission_end(void);

size_t admission_waiting(void);

#endif
