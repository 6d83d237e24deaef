/* SPDX-License-Identifier: ISC */
/*
 * A command whose network is a list of hosts, and what is told of the decisions
 * about it. helpers/netproxy.h has the proxy itself.
 */
#pragma once

#include <event2/event_struct.h>

#include "audit.h"
#include "base.h"
#include "json.h"
#include "netproxy_message.h"
#include "network_list.h"
#include "queue.h"

/* The different denials of one command that are kept. */
#define NETWORK_DENIED_MAX 32

/*
 * The operator's part of every list (session.network_limits).
 * helpers/netproxy.c puts it into NETPROXY_OPEN.
 */
struct network_limits {
	uint32_t connections; /* of each command, at once */
	uint64_t bytes;	      /* of each command, both ways; 0: no limit */
	/* owned: one pattern per line; empty: everything, also what is not
	 * public, and nothing */
	char *allow, *deny;
};

/* A denial, which counts once however often it happens. */
struct network_denied {
	char *host; /* owned */
	uint16_t port;
	char *rule; /* owned: the pattern that decided; NULL: none */
	enum netproxy_reason reason;
};

/* session_process.network */
struct network {
	TAILQ_ENTRY(network) link; /* netproxy.lists, while it is open */
	struct session_process *process;
	struct network_list list; /* owned */
	uint32_t number;	  /* of the list, at execd-netproxy */
	int listener; /* owned; for an execd-netproxy that comes back; or -1 */
	/* owned, likewise: of the resolver, at resolver_address; -1: none */
	int resolver;
	/* owned, likewise: of what is redirected (redirect.h); -1: nothing is
	 */
	int redirected;
	uint16_t port;		   /* of the listener */
	uint32_t resolver_address; /* in host order */
	unsigned names; /* that got an address of their own behind it */
	/* The first use of the sockets while no execd-netproxy runs. */
	struct event first_use[3];
	bool told; /* execd-netproxy has the list */
	struct network_denied denied[NETWORK_DENIED_MAX];
	unsigned ndenied;
	uint64_t more_denied; /* denials that have no place there */
	struct network_recorded recorded;
};

void network_free(struct network *n);

/* Writes a list as execd-netproxy and execd-http read it (struct
 * netproxy_open): its own patterns and the operator's. */
void network_put_rules(struct buf *b, const struct network_list *list,
    const struct network_limits *limits);

/*
 * Every decision about a command's network passes here, in its order. What is
 * denied is kept with the command, and the client is told of each.
 */
void network_decided(struct network *n, const struct netproxy_decided *d);

/* Writes `protocol` and, for a command that went past the proxy's port,
 * `direct`. */
void network_write_protocol(struct json_writer *w, enum netproxy_protocol p);

/* Writes a decision as the rest of an object that is open. */
void network_write_decided(
    struct json_writer *w, const struct netproxy_decided *d);

/*
 * Writes what was denied to the command so far as members of an object that is
 * open: nothing, networkDenied, or this and networkDeniedMore.
 */
void network_write_denied(
    struct json_writer *w, const struct session_process *p);
