/* SPDX-License-Identifier: ISC */
/*
 * The lists of hosts, one for each command with a network list, and what they
 * say of a target.
 */
#pragma once

#include <event2/event_struct.h>

#include "netproxy_message.h"
#include "network_rules.h"
#include "queue.h"

struct proxy_client;
struct proxy_name;

struct proxy_list {
	LIST_ENTRY(proxy_list) link;
	uint32_t number;
	struct network_rules client, ceiling;
	bool has_ceiling; /* the operator allows only what is listed */
	bool bad;	  /* a pattern could not be read: nothing is open */
	bool asks, limited;
	bool told_limit; /* the runner knows that a limit is reached */
	unsigned connections, most; /* at once */
	uint64_t bytes, most_bytes; /* 0: no limit */
	int listener;
	struct event accepting;
	LIST_HEAD(, proxy_client) clients;

	/* For programs that know no proxy (proxy_names.h). */
	uint16_t ports[NETPROXY_PORTS_MAX]; /* that any name may answer on */
	size_t nports;
	int resolver; /* -1: there is none, and nothing below counts */
	struct event asking;
	bool accepts; /* listeners of names are watched */
	STAILQ_HEAD(, proxy_name) names;
	/* What is redirected (redirect.h) comes here; -1: nothing is. */
	int redirected;
	struct event taking;
	uint32_t resolver_address; /* in host order */
	uint32_t given;		   /* addresses behind it */
	uint32_t last_name;
	unsigned lookups;	      /* that wait for the runner */
	bool names_over, names_full;  /* no more addresses; by the limit */
	char denied[HOST_NAME_BYTES]; /* the latest that was refused */
	uint16_t denied_type;	      /* and its record; 0: seen twice */
};

struct proxy_verdict {
	bool allowed;
	bool ask; /* not allowed, unless the client says so */
	enum netproxy_source source;
	enum netproxy_reason reason;
	char rule[NETPROXY_RULE_BYTES]; /* or empty */
};

/* Reads the patterns of a list. */
void proxy_list_read(struct proxy_list *l, struct slice rules);

/* Judges a host and a port by both lists. */
void proxy_list_judge(const struct proxy_list *l, const struct host_name *host,
    uint16_t port, enum network_way way, struct proxy_verdict *v);

/*
 * Finds the ports on which a command may reach a host without the proxy. Those
 * about which the client is to be asked are among them. Returns their number;
 * if it is 0, *v says why.
 */
size_t proxy_list_ports(const struct proxy_list *l,
    const struct host_name *host, uint16_t ports[NETPROXY_PORTS_MAX],
    struct proxy_verdict *v);

/*
 * Tells whether both lists permit this address of a host that was judged. If
 * not, *v says why; without a denial its rule stays that of the host.
 */
bool proxy_list_permit(const struct proxy_list *l, const struct host_name *host,
    uint16_t port, const struct in6_addr *address, struct proxy_verdict *v);

/*
 * Reads a host that need not be ASCII: its name is converted (RFC 5891).
 * Returns 0 or -EINVAL.
 */
int proxy_host_read(struct host_name *host, struct slice text);
