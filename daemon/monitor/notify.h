/*
 * Tells systemd how we are (sd_notify(3), the protocol as documented there;
 * without its library). Without NOTIFY_SOCKET it tells nobody.
 */
#ifndef NOTIFY_H
#define NOTIFY_H

#include <stdint.h>

/* Before the environment is passed on. */
void notify_init(void);

/* Says that the loop still turns, when it is time (WatchdogSec=). Returns when
 * it will be again (CLOCK_MONOTONIC ms), or -1: nobody wants to know. */
int64_t notify_alive(int64_t now);

/* "READY=1"; several assignments are lines. */
void notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
