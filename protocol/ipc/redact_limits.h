/* SPDX-License-Identifier: ISC */
/*
 * Limits for the configured patterns of secrets. The broker reads the patterns,
 * and runners use them.
 */
#ifndef REDACT_LIMITS_H
#define REDACT_LIMITS_H

#define REDACT_PATTERNS_MAX  32 /* for names and for values separately */
#define REDACT_PATTERN_CHARS 60

#endif
