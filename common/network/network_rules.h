/* SPDX-License-Identifier: ISC */
/*
 * Lists of hosts that a command may reach, or may not. A list comes from the
 * client, and narrows or is narrowed by the operator's; each is a struct
 * network_rules. Pure.
 *
 * A pattern is "HOST", "*.NAME" (every name below it), "**.NAME" (the name, and
 * every one below it) or "*" (every name, and every public address), each with
 * ":PORT", ":*" (every port) or without. HOST may be an address; an address
 * that is not public is reached only by a pattern that is this address, or by
 * "localhost".
 */
#pragma once

#include "host_name.h"

#define NETWORK_RULES_MAX      1000 /* patterns of one list */
#define NETWORK_RULE_TEXT_MAX  (HOST_NAME_BYTES + 16)
#define NETWORK_RULE_ERROR_MAX 512

enum network_effect {
	NETWORK_ALLOW,
	NETWORK_DENY,
	NETWORK_REVIEW, /* the client is asked, though the host is allowed */
};

struct network_rule {
	enum network_effect effect;
	bool any;	    /* "*" */
	bool itself, below; /* the name itself, every name below it */
	bool every_port;
	uint16_t port; /* 0: the pattern names none */
	struct host_name host;
};

struct network_rules {
	struct network_rule *rules; /* owned */
	size_t count;
	bool allow_local; /* any address may be private */
	bool every_port;  /* a pattern without a port is for all: a client's */
};

/* How a command wants to speak with a host. */
enum network_way {
	NETWORK_HTTP, /* the proxy speaks HTTP; ports need not be listed */
	/* bytes of any kind: ports 80 and 443, or listed, or every_port */
	NETWORK_TUNNEL,
};

enum network_answer {
	NETWORK_ALLOWED,
	NETWORK_DENIED,	     /* by a rule */
	NETWORK_NOT_LISTED,  /* no rule allows it */
	NETWORK_PORT_CLOSED, /* a rule allows the host, but not the port */
	NETWORK_REVIEWED,    /* a rule wants the client to be asked */
};

/*
 * Adds a rule. Returns 0, or -EINVAL, -E2BIG or -EILSEQ (host_name_parse())
 * with a text for whoever wrote the list.
 */
int network_rules_add(struct network_rules *r, enum network_effect effect,
    struct slice pattern, char error[NETWORK_RULE_ERROR_MAX]);
void network_rules_clear(struct network_rules *r);

bool network_rules_have(
    const struct network_rules *r, enum network_effect effect);

/*
 * Judges a host. A denial wins over everything, a review over an allowance.
 * *rule is the rule that decided, or NULL; it belongs to r.
 */
enum network_answer network_rules_judge(const struct network_rules *r,
    const struct host_name *host, uint16_t port, enum network_way way,
    const struct network_rule **rule);

/*
 * Returns the rule that denies this address of a host, or NULL. A name may lead
 * to what is denied, and an address of IPv6 to one of IPv4.
 */
const struct network_rule *network_rules_denial(const struct network_rules *r,
    const struct in6_addr *address, uint16_t port);

/* Tells whether the list permits this address of an allowed host. */
bool network_rules_permit(const struct network_rules *r,
    const struct host_name *host, const struct in6_addr *address);

/* Writes the pattern of a rule. */
void network_rule_format(
    const struct network_rule *rule, char text[NETWORK_RULE_TEXT_MAX]);
