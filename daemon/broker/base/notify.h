/* SPDX-License-Identifier: ISC */
/*
 * Tells systemd how we are (sd_notify(3), the protocol as documented there;
 * without its library). Without NOTIFY_SOCKET it tells nobody.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Before the environment is passed on. */
void notify_init(void);

/* Says that all is well, if it is, when it is time (WatchdogSec=). Returns when
 * to come again (CLOCK_MONOTONIC ms), or -1: nobody wants to know. */
int64_t notify_alive(int64_t now, bool well);

/* "READY=1"; several assignments are lines. */
void notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
