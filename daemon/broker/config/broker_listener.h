/* SPDX-License-Identifier: ISC */
/*
 * Listening addresses. The broker parses and binds them, and the front-end
 * accepts connections. A bound socket outlives every front-end.
 */
#pragma once

#include "base.h"
#include "conf_value.h"

/* The kind of an address. */
enum address_scheme {
	ADDRESS_WS,
	ADDRESS_WSS,
	ADDRESS_TCP, /* of an agent, which speaks no WebSocket */
	ADDRESS_UNIX,
	ADDRESS_SYSTEMD, /* a socket that systemd passed to execd */
	ADDRESS_STDIO,
};

/* A section [listener NAME] of execd.conf(5), and its socket. */
struct listener {
	char *name;
	/* as the configuration says */
	struct frontend_listener keys;
	char *address;
	char *certificate, *certificate_key, *client_ca, *client_crl;
	uint32_t mode; /* of the file of an ADDRESS_UNIX */
	char *group;
	bool ipv6_only; /* of [::] */
	/* identities that are accepted; none: every identity */
	struct strings identities;
	/* identities that may read /metrics; none: whoever connects */
	struct strings operators;
	/* networks whose PROXY header is believed */
	struct nets trusted_proxies;
	/* what clients learn of this host, with CONTROL_HOST_TAG_MAX; NULL:
	 * nothing */
	char *host_tag;
	/* identity of a client without a credential */
	char *allow_unauthenticated;
	/* what was loaded; descriptors are owned, or -1 */
	enum address_scheme scheme;
	/* sealed copies of the files */
	int chain_fd, key_fd, client_ca_fd, client_crl_fd;
	uint8_t version[32]; /* hash of the files' contents */
	/* when the first one expires, in seconds since 1970; 0: never, or there
	 * is none */
	int64_t certificate_end, crl_end;
	/* the bound socket */
	uint32_t id;
	uint32_t place; /* its number in root's list */
	enum listener_kind kind;
	int fd;	     /* listening; for LISTENER_STDIO the input */
	int out_fd;  /* for LISTENER_STDIO the output, else -1 */
	int diag_fd; /* for tcp_peer_uid(), if it is asked here; else -1 */
	bool loopback;
	char url[128]; /* with the real port, for the line on standard output */
};

struct listener *listener_new(const char *name);
/* closes the descriptors, removes no file */
void listener_free(struct listener *l);

/* Parses l->address. Returns 0 or -EINVAL. */
int listener_parse(struct listener *l);

/* Tells whether the listener speaks TLS. */
static inline bool
listener_has_tls(const struct listener *l)
{
	return l->certificate != NULL;
}

/* Binds the socket, or takes over the one that the previous broker had. Returns
 * 0, or an enum exit_code after logging the error. */
int listener_open(struct listener *l);

/* Tells whether there was ever a listener of that id. */
bool listener_was(uint32_t id);

/* The listener is gone: root forgets its socket, and removes the file of a unix
 * listener. */
void listener_close(const struct listener *l);

/* tls_files.c: checks that the files of a TLS listener belong together, and
 * makes copies for the programs that need them. The broker itself does no TLS.
 */

/* Reads and checks the certificate, the key and the client CA. Returns 0, or
 * -EINVAL with why[CONF_WHY_MAX]. */
int tls_files_load(struct listener *l, char *why);
