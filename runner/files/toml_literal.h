/* SPDX-License-Identifier: ISC */
/*
 * The values of TOML 1.0 that are no strings: how a boolean, a number, a date
 * and a time are written.
 */
#ifndef TOML_LITERAL_H
#define TOML_LITERAL_H

#include <stdbool.h>

#include "util.h"

/* Is the whole text such a value? */
bool toml_is_literal(struct slice text);

/* Is it a date alone? A time may follow it behind a blank. */
bool toml_is_date(struct slice text);

#endif
