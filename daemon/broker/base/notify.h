/* SPDX-License-Identifier: ISC */
/*
 * Tells systemd the state of execd (sd_notify(3), the protocol as documented
 * there; without its library). Does nothing without NOTIFY_SOCKET.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Must be called before the environment is passed on. */
void notify_init(void);

/* Tells systemd that all is well, if it is, whenever this is due
 * (WatchdogSec=). Returns when to call it again (CLOCK_MONOTONIC ms), or -1 if
 * systemd does not want to know. */
int64_t notify_alive(int64_t now, bool well);

/* Sends an assignment like "READY=1". Several assignments are lines. */
void notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
