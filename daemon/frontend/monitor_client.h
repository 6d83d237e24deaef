/*
 * The front-end's side of the control channel: requests by function, answers
 * and events by table.
 */
#ifndef MONITOR_CLIENT_H
#define MONITOR_CLIENT_H

#include "connection.h"

/* Waits for CONFIGURE and its descriptors; anything else is fatal. */
void monitor_wait_configure(
    struct control_configure *c, int fds[CONTROL_FDS_MAX], size_t *nfds);

/* Serves the control channel from now on. */
void monitor_watch(void);

void monitor_ready(const struct control_ready *r);
void monitor_authenticate(const struct connection *c, enum credential_kind kind,
    struct slice credential);
void monitor_open(const struct connection *c);
void monitor_resume(const struct connection *c, const char *session_id);
void monitor_watch_session(const struct connection *c, const char *session_id);
void monitor_close(const struct connection *c);
void monitor_done(void);

#endif
