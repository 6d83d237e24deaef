/* SPDX-License-Identifier: ISC */
/*
 * Configured patterns of secrets: read by the broker, used by runners.
 */
#ifndef REDACT_LIMITS_H
#define REDACT_LIMITS_H

#define REDACT_PATTERNS_MAX  32 /* of names and of values each */
#define REDACT_PATTERN_CHARS 60

#endif
