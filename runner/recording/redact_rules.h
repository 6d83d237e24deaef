/* SPDX-License-Identifier: ISC */
/*
 * Decides what is a secret: by its name, by its form, or because an option
 * takes one. There are built-in and configured rules. Used by redact.c.
 */
#ifndef REDACT_RULES_H
#define REDACT_RULES_H

#include "redact.h"

/*
 * Tell whether token is the name of a secret, or a secret. Of a path only the
 * last name counts, of an option what follows its hyphens.
 */
bool redact_is_name(const struct redact_rules *rules, struct slice token);

bool redact_is_value(const struct redact_rules *rules, struct slice token);

/*
 * An option like "-u", which a name and a password follow, separated by a
 * colon.
 */
bool redact_is_pair_option(struct slice token);

#endif
