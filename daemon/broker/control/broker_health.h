/* SPDX-License-Identifier: ISC */
/*
 * Does all of execd answer? What the watchdog of systemd, `execd ctl status`
 * and nobody's good faith is told.
 */
#ifndef BROKER_HEALTH_H
#define BROKER_HEALTH_H

#include <stdint.h>

struct broker;

/* What does not answer, in words; NULL: all parts do. */
const char *broker_health_of_parts(const struct broker *m, int64_t now);

/* The same, and what else keeps sessions from being served. */
const char *broker_health_reason(const struct broker *m, int64_t now);

#endif
