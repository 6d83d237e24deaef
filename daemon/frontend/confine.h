/* SPDX-License-Identifier: ISC */
/*
 * What the front-end gives up before it hears a stranger.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include "offer.h"

/*
 * Everything that opens or loads anything has happened. As root (`drop`)
 * every step must work or the program ends; an ordinary user gets what the
 * kernel allows him, and *ready says what that is.
 */
void confine(const struct offer *offer, struct control_ready *ready);

#endif
