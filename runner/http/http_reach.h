/* SPDX-License-Identifier: ISC */
/*
 * What requests may reach where an operator lists hosts: what a command reaches
 * whose policy has a network. The judgement is execd-netproxy's (proxy_list.h);
 * here it is made before each request is sent, for each redirect, and for each
 * address.
 */
#pragma once

#include <curl/curl.h>

#include "host_name.h"
#include "proxy_list.h"

struct channel;
struct http_message;

/*
 * Takes HTTP_RULES out of the environment, without which no list holds, and
 * execd's own ports from OWN_PORTS_FD, which no request reaches in any case.
 */
void http_reach_init(void);

/* Where a request leads, and what became of its addresses. */
struct http_reach {
	struct channel *channel; /* by which the runner is told */
	struct host_name host;
	uint16_t port;
	bool refused, permitted;      /* an address was */
	struct proxy_verdict refusal; /* of the latest that was not */
};

/*
 * Judges where *m leads. Returns 0, or -EACCES with the reason in
 * error[ARGS_ERROR_MAX]. The runner is told of each decision before the client
 * learns of it.
 */
int http_reach_judge(struct http_reach *r, struct channel *channel,
    const struct http_message *m, char *error);

/* Has each address of the transfer judged, also of a proxy; r stays until it
 * ends. */
void http_reach_watch(struct http_reach *r, CURL *easy);

/*
 * Returns the reason if the transfer failed because no address was permitted,
 * in text[ARGS_ERROR_MAX]; or NULL. Call it once.
 */
const char *http_reach_refused(const struct http_reach *r, char *text);
