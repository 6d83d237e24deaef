/* SPDX-License-Identifier: ISC */
/*
 * Tells whether all of execd answers, for the watchdog of systemd and for
 * `execd ctl status`.
 */
#ifndef BROKER_HEALTH_H
#define BROKER_HEALTH_H

#include <stdint.h>

struct broker;

/* Names the part that does not answer, or returns NULL if all do. */
const char *broker_health_of_parts(const struct broker *m, int64_t now);

/* The same, and also tells what else keeps sessions from being served. */
const char *broker_health_reason(const struct broker *m, int64_t now);

#endif
