/* SPDX-License-Identifier: ISC */
/*
 * The runner's side of execd-netproxy: the way out of sandboxes whose network
 * is a list of hosts. Each command with a list has sockets of its own in its
 * sandbox (netproxy_sockets.h), by which decisions are known to be about it.
 * The program is started when a command uses one of them first, and ends a
 * moment after the last list. When it dies, the next use brings it back with
 * the lists that are open. If it cannot be started, what waits is refused, and
 * told as a decision.
 */
#pragma once

#include "network.h"

struct client;
struct rpc_message;
struct sandbox;

/*
 * Makes the sockets for a command that is about to start. Returns 0 with
 * *network, which the caller owns until netproxy_open(), and *port of
 * 127.0.0.1; -ESTALE if the sandbox has ended; or another -errno. *why says
 * what failed.
 */
int netproxy_prepare(struct session *s, struct sandbox *sandbox,
    const struct network_list *list, struct network **network, uint16_t *port,
    const char **why);

/* The command was started: its list is open. */
void netproxy_open(struct session_process *sp, struct network *network);

/* Takes in what was decided so far. A command learns nothing of a decision
 * before this has been told of it. */
void netproxy_settle(struct session_process *sp);

/* The list of a command ends, and its connections with it. */
void netproxy_close(struct session_process *sp);

/*
 * Takes a client's answer to network/policyRequest. Returns false if the client
 * was asked nothing under that id.
 */
bool netproxy_take_answer(struct client *c, const struct rpc_message *m);

/* The client is gone: nobody is asked any more. */
void netproxy_detached(struct session *s);

/* The client reads again. */
void netproxy_resume(struct session *s);
