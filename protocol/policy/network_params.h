/* SPDX-License-Identifier: ISC */
/*
 * A list of hosts that a client gives a command instead of the network
 * (doc/protocol.md section 13.7): `networkProxy` of the peer, and execd's own
 * `network`. Only the form is decoded here; patterns are read later.
 */
#pragma once

#include "args.h"

struct network_params {
	bool given;
	bool own;	  /* `network` */
	bool enabled;	  /* false: the peer's form asks for no proxy */
	bool socks;	  /* variables name SOCKS5 */
	bool limited;	  /* HTTP that only reads */
	bool allow_local; /* private addresses may be reached */
	bool transparent; /* by programs that know no proxy, too */
	bool wants_unix;  /* sockets of the host by their path */
	bool asks;	  /* the client decides about what is not listed */
	uint64_t ask_ms;  /* how long it is waited for */
	/* what may be NULL for none: */
	const struct json_value *domains; /* members "allow" or "deny" */
	const struct json_value *review, *allow, *deny; /* strings */
};

/* Decodes `networkProxy` or `network` into *n, of which nothing else is set.
 * Errors are reported in `a`. */
void network_params_decode_proxy(
    struct args *a, const struct json_value *v, struct network_params *n);
void network_params_decode_own(
    struct args *a, const struct json_value *v, struct network_params *n);
