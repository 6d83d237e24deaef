/* SPDX-License-Identifier: ISC */
/*
 * What is a secret: by its name, by its look, or because an option takes one.
 * Built-in rules, and configured ones. For redact.c.
 */
#ifndef REDACT_RULES_H
#define REDACT_RULES_H

#include "redact.h"

/* Of a path the last name, of an option what follows its hyphens. */
bool redact_is_name(const struct redact_rules *rules, struct slice token);

bool redact_is_value(const struct redact_rules *rules, struct slice token);

/* "-u": a name and a password follow, with a colon between. */
bool redact_is_pair_option(struct slice token);

#endif
