/* SPDX-License-Identifier: ISC */
/*
 * The way for programs that know no proxy: a resolver, of which a command's
 * resolv.conf knows, answers a name that the list permits with an address of
 * the sandbox that stands for it. On that address there is a listener for each
 * port that the list permits, and who connects to it is treated as a tunnel to
 * the name. Nothing is looked up for an answer: the name is resolved when a
 * connection was permitted. A name that the list does not permit has no
 * address, and is never sent anywhere.
 */
#ifndef PROXY_NAMES_H
#define PROXY_NAMES_H

#include "proxy_list.h"

struct event_base;

void proxy_names_init(struct event_base *base);

/* Begins to answer. fd, the resolver's socket, becomes the list's. */
void proxy_names_open(struct proxy_list *l, int fd);

/* Whether connections are accepted, and look-ups taken. */
void proxy_names_watch(struct proxy_list *l, bool accepts, bool answers);

/* The runner's answer to a NAME. The descriptors become the list's. */
void proxy_names_named(struct proxy_list *l, const struct netproxy_named *named,
    const int *fds, size_t nfds);

void proxy_names_close(struct proxy_list *l);

#endif
