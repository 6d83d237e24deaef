/* SPDX-License-Identifier: ISC */
/*
 * Reads a client's list of hosts, which says what the commands of a sandbox may
 * reach. The list is part of the plan, because commands of one sandbox reach
 * the ports of each other's proxy. Pure.
 */
#pragma once

#include "network_params.h"

/* Bytes of the patterns of a client, with a letter and a newline each. The rest
 * of NETPROXY_RULES_MAX is the operator's. */
#define NETWORK_LIST_MAX (48u << 10)

struct network_list {
	/*
	 * Owned: the first line says how the list is meant, the others are
	 * patterns as struct netproxy_open has them. Lists with one text mean
	 * the same. NULL: there is no list.
	 */
	char *text;
	struct slice rules; /* in text */
	bool limited, allow_local, asks;
	/* programs that know no proxy reach addresses and every port, too */
	bool transparent;
	bool socks;	 /* variables name SOCKS5; no part of the text */
	uint64_t ask_ms; /* likewise */
};

/*
 * Reads the patterns of *p. Returns 0, or -EINVAL with the message of error
 * -32602 in error[ARGS_ERROR_MAX]. The caller calls network_list_clear() in any
 * case.
 */
int network_list_read(
    struct network_list *l, const struct network_params *p, char *error);
/*
 * Makes the list of a policy with a network where that is not the host's: every
 * public address, and what the operator's lines of patterns name beside. The
 * caller frees it with network_list_clear().
 */
void network_list_everything(struct network_list *l, const char *named);
void network_list_clear(struct network_list *l);
/*
 * What a command of the list reaches without the proxy, as NO_PROXY has it: its
 * own loopback, unless a pattern names the host's. Static.
 */
const char *network_list_not_through(const struct network_list *l);

/* Tells whether the text of a list (or NULL) is of a transparent one. */
bool network_list_is_transparent(const char *text);

/* Adds patterns, one per line, to the text of a list, with the letter before
 * each (struct netproxy_open). Empty lines are left out. */
void network_list_put(struct buf *b, char letter, const char *lines);
