/* SPDX-License-Identifier: ISC */
/*
 * Messages between a runner and its execd-netproxy. The channel is an AF_UNIX
 * SOCK_SEQPACKET socket; both are the same user and of one release. Each list
 * of hosts has a number, which the runner chose, and a listener.
 */
#pragma once

#include "buf.h"

#define NETPROXY_HOST_BYTES   254
#define NETPROXY_METHOD_BYTES 33
#define NETPROXY_RULE_BYTES   272
/* Ports that a name answers on for programs that know no proxy. They come in
 * one packet and from one request to the sandbox. */
#define NETPROXY_PORTS_MAX 8
/* Names that one command looks up with its resolver, while it lives. */
#define NETPROXY_NAMES_MAX 128
/* The same, where none of them has listeners (netproxy_open.redirected). */
#define NETPROXY_REDIRECTED_MAX 252
/* of all patterns of one list, in a message that fits into a packet */
#define NETPROXY_RULES_MAX   (64u << 10)
#define NETPROXY_MESSAGE_MAX (NETPROXY_RULES_MAX + 1024)

/* The variable by which execd-http gets the rules of its requests, as struct
 * netproxy_open has them. Without it they reach everything. */
#define HTTP_RULES "EXECD_HTTP_RULES"

enum netproxy_type {
	/* runner -> execd-netproxy */
	NETPROXY_OPEN = 1,   /* netproxy_open + the listener, the socket of the
				resolver if there is one, and the listener for
				what is redirected */
	NETPROXY_CLOSE = 2,  /* netproxy_close: its connections end */
	NETPROXY_ANSWER = 3, /* netproxy_answer, to ASK */
	/* execd-netproxy -> runner; NETPROXY_DECIDED also from execd-http */
	NETPROXY_DECIDED = 4, /* netproxy_decided */
	NETPROXY_ASK = 5,     /* netproxy_ask: whether the client permits it */
	NETPROXY_NAME = 6,    /* netproxy_name: a new name wants an address, or
				 without ports: it has one, and no answer comes */
	/* runner -> execd-netproxy */
	NETPROXY_NAMED = 7, /* netproxy_named, to NAME + a listener for each of
			       its ports, in their order */
};

/* Who decided. */
enum netproxy_source {
	NETPROXY_BY_LIST,     /* the client's list */
	NETPROXY_BY_CLIENT,   /* the client, which was asked */
	NETPROXY_BY_MODE,     /* the client's mode */
	NETPROXY_BY_OPERATOR, /* the operator's list */
	NETPROXY_BY_LIMIT,    /* a limit of the operator */
	NETPROXY_SOURCES
};

enum netproxy_reason {
	NETPROXY_LISTED,
	NETPROXY_DENIED,
	NETPROXY_NOT_LISTED,
	NETPROXY_PORT_CLOSED,
	NETPROXY_PRIVATE,    /* the address is not public */
	NETPROXY_BAD_METHOD, /* mode "limited" takes GET, HEAD and OPTIONS */
	NETPROXY_NO_TUNNELS, /* mode "limited" takes no CONNECT and SOCKS */
	NETPROXY_OTHER_NAME, /* TLS asked for another name than CONNECT */
	NETPROXY_NO_UDP,     /* SOCKS5 with UDP */
	NETPROXY_TOO_MANY,   /* connections at once */
	NETPROXY_TOO_MUCH,   /* bytes */
	NETPROXY_BAD_LIST,   /* a pattern could not be read; nothing is open */
	NETPROXY_TOO_MANY_NAMES, /* NETPROXY_NAMES_MAX */
	NETPROXY_NOT_STARTED,	 /* by the runner: no execd-netproxy serves */
	NETPROXY_OWN_PORT,	 /* a port of execd itself (own_ports.h) */
	NETPROXY_REASONS
};

enum netproxy_protocol {
	NETPROXY_HTTP,
	NETPROXY_HTTPS_CONNECT,
	NETPROXY_SOCKS5_TCP,
	NETPROXY_SOCKS5_UDP,
	NETPROXY_DIRECT_TCP, /* to the address that stands for a name */
	NETPROXY_DNS,	     /* a look-up; no port is known */
	NETPROXY_REQUEST,    /* http/request of a client, by execd-http */
	NETPROXY_PROTOCOLS
};

struct netproxy_open {
	uint32_t list;
	uint32_t connections; /* the most at once */
	uint64_t bytes;	      /* the most, both ways together; 0: no limit */
	bool asks;	      /* ask for what is not listed */
	bool limited;	      /* only HTTP that reads */
	bool allow_local;     /* the client's list permits private addresses */
	bool redirected;      /* all of TCP comes here (redirect.h) */
	uint32_t resolver;    /* its address, in host order; or 0 */
	uint32_t names;	      /* addresses behind it that were given out */
	/*
	 * Lines of a letter and a pattern: a(llow), d(eny) and r(eview) of the
	 * client, A(llow) and D(eny) of the operator. At most
	 * NETPROXY_RULES_MAX bytes. After decoding it lies in the message.
	 */
	struct slice rules;
};

struct netproxy_close {
	uint32_t list;
};

struct netproxy_answer {
	uint32_t list;
	uint32_t ask;
	bool allowed;
};

struct netproxy_target {
	enum netproxy_protocol protocol;
	uint16_t port;
	char host[NETPROXY_HOST_BYTES];
};

struct netproxy_decided {
	uint32_t list;
	struct netproxy_target target;
	bool allowed;
	enum netproxy_source source;
	enum netproxy_reason reason;
	uint16_t client_port; /* of the command's end of the connection */
	char method[NETPROXY_METHOD_BYTES]; /* of HTTP; or empty */
	char rule[NETPROXY_RULE_BYTES];	    /* the pattern; or empty */
};

struct netproxy_ask {
	uint32_t list;
	uint32_t ask; /* execd-netproxy chose the number */
	struct netproxy_target target;
};

struct netproxy_name {
	uint32_t list;
	uint32_t name; /* execd-netproxy chose the number */
	uint32_t nports;
	uint16_t ports[NETPROXY_PORTS_MAX];
};

struct netproxy_named {
	uint32_t list;
	uint32_t name;
	uint32_t address; /* in host order; 0: none */
	bool over;	  /* nor will other names have one */
	bool full;	  /* because there are NETPROXY_NAMES_MAX */
};

union netproxy_message {
	struct netproxy_open open;
	struct netproxy_close close;
	struct netproxy_answer answer;
	struct netproxy_decided decided;
	struct netproxy_ask ask;
	struct netproxy_name name;
	struct netproxy_named named;
};

/* Appends a message. `type` names the member of *m. */
void netproxy_put(
    struct buf *b, enum netproxy_type type, const union netproxy_message *m);

/* Decodes a message. Returns its type, or -EBADMSG. */
int netproxy_get(const void *message, size_t len, union netproxy_message *m);

/* Tells whether the command went past the proxy's port. The reference knows no
 * such protocols. */
bool netproxy_is_direct(enum netproxy_protocol p);

/* Names in messages to clients (execd-protocol(7)) and in replies to
 * commands. */
const char *netproxy_protocol_name(enum netproxy_protocol p);
const char *netproxy_source_name(enum netproxy_source s);
const char *netproxy_decider_name(enum netproxy_source s);
const char *netproxy_reason_name(enum netproxy_reason r);
