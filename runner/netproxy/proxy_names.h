/* SPDX-License-Identifier: ISC */
/*
 * The way for programs that know no proxy: a resolver, of which a command's
 * resolv.conf knows, answers a name that the list permits with an address of
 * the sandbox that stands for it. On that address there is a listener for each
 * port that the list permits, and who connects to it is treated as a tunnel to
 * the name. Nothing is looked up for an answer: the name is resolved when a
 * connection was permitted. A name that the list does not permit has no
 * address, and is never sent anywhere.
 *
 * Where TCP is redirected (redirect.h), every name has an address, and a
 * listener takes the connections to all of them, and to addresses that stand
 * for no name. Names, addresses and ports are judged then.
 */
#pragma once

#include "proxy_dns.h"
#include "proxy_list.h"

struct event_base;

void proxy_names_init(struct event_base *base);

/* Begins to answer, and to take what is redirected (-1: nothing is). The
 * sockets become the list's. */
void proxy_names_open(struct proxy_list *l, int resolver, int redirected);

/*
 * Answers a look-up where TCP is redirected. Returns the length of the answer,
 * 0: there is none.
 */
size_t proxy_names_answer(struct proxy_list *l, const void *query, size_t len,
    uint16_t client_port, uint8_t answer[DNS_ANSWER_MAX]);

/* Whether connections are accepted, and look-ups taken. */
void proxy_names_watch(struct proxy_list *l, bool accepts, bool answers);

/* The runner's answer to a NAME. The descriptors become the list's. */
void proxy_names_named(struct proxy_list *l, const struct netproxy_named *named,
    const int *fds, size_t nfds);

void proxy_names_close(struct proxy_list *l);
