/* SPDX-License-Identifier: ISC */
/*
 * Listening addresses: parsed and bound by the broker, accepted from by the
 * front-end. A bound socket outlives every front-end.
 */
#ifndef BROKER_LISTENER_H
#define BROKER_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "conf_value.h"
#include "control.h"

/* What an address asks for. */
enum address_scheme {
	ADDRESS_WS,
	ADDRESS_WSS,
	ADDRESS_UNIX,
	ADDRESS_SYSTEMD, /* a socket that execd was started with */
	ADDRESS_STDIO,
};

/* [listener NAME] of execd.conf(5), and the socket behind it. */
struct listener {
	char *name;
	/* as configured */
	char *address;
	char *certificate, *certificate_key, *client_ca, *client_crl;
	uint32_t client_certificate; /* enum client_certificate */
	uint32_t mode;		     /* of ADDRESS_UNIX */
	char *group;
	struct strings identities;   /* who may come in here; none: everybody */
	bool operate;		     /* /healthz and /metrics */
	struct nets trusted_proxies; /* whose PROXY header is believed */
	bool hand_over; /* clients to their runners, if there is no TLS */
	char *allow_unauthenticated; /* who a client without credential is */
	/* as loaded: descriptors are owned, or -1 */
	enum address_scheme scheme;
	/* unchangeable copies */
	int chain_fd, key_fd, client_ca_fd, client_crl_fd;
	uint8_t version[32]; /* hash of what they hold */
	/* seconds since 1970, when the first expires; 0: never, or none */
	int64_t certificate_end, crl_end;
	/* as bound */
	uint32_t id;
	uint32_t place; /* its number in root's list */
	enum listener_kind kind;
	int fd;	    /* listening. LISTENER_STDIO: input */
	int out_fd; /* LISTENER_STDIO: output, else -1 */
	bool loopback;
	char url[128]; /* with the real port, for the line on stdout */
};

struct listener *listener_new(const char *name);
void listener_free(struct listener *l); /* closes, removes nothing */

/* What the address is. 0 or -EINVAL. */
int listener_parse(struct listener *l);

/* Does it speak TLS? */
static inline bool
listener_has_tls(const struct listener *l)
{
	return l->certificate != NULL;
}

/* Has it bound, or takes over the socket that the broker before had. 0, or an
 * enum exit_code after logging what is wrong. */
int listener_open(struct listener *l);

/* Was there ever a listener of that id? */
bool listener_was(uint32_t id);

/* It is no more: root keeps no socket of it, and removes what a unix listener
 * leaves in the file system. */
void listener_close(const struct listener *l);

#endif
