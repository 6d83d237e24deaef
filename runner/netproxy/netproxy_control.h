/* SPDX-License-Identifier: ISC */
/* The channel to the runner, and the table of lists. */
#pragma once

#include <stdbool.h>

#include "netproxy_message.h"

struct event_base;
struct proxy_list;

void netproxy_control_init(struct event_base *base);

/* Tells the runner. What does not fit waits; meanwhile nobody is let in. */
void netproxy_control_tell(
    enum netproxy_type type, const union netproxy_message *m);

/* Tells whether the runner has got everything that it was told. */
bool netproxy_control_is_heard(void);

/* Accepts connections and look-ups of this list, or no more for now. */
void netproxy_control_watch(struct proxy_list *l);

/* A connection of this list is over. */
void netproxy_control_left(struct proxy_list *l);
