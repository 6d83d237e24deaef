/* SPDX-License-Identifier: ISC */
/*
 * What systemd tells execd and what execd tells systemd (sd_notify(3) and
 * sd_listen_fds(3), the protocols as documented there; without their library).
 */
#pragma once

#include "base.h"

/* Must be called before the environment is passed on. */
void notify_init(void);

/* Tells systemd that all is well, if it is, whenever this is due
 * (WatchdogSec=). Returns when to call it again (CLOCK_MONOTONIC ms), or -1 if
 * systemd does not want to know. */
int64_t notify_alive(int64_t now, bool well);

/* Sends an assignment like "READY=1". Several assignments are lines. */
void notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * Sockets that systemd bound and passes to execd (sd_listen_fds(3), the
 * protocol as documented there; without its library).
 */

/* Notes the sockets that were passed, and keeps them from children. Must be
 * called before any descriptor is opened and before the environment is passed
 * on. */
void activation_init(void);

/* Returns a copy, the caller's, of the socket of that name
 * (FileDescriptorName=), or -ENOENT. */
int activation_find(const char *name);
