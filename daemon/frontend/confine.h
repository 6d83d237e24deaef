/*
 * What the front-end gives up before it hears a stranger.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include "control.h"

/*
 * Everything that opens or loads anything has happened. As root (c->drop)
 * every step must work or the program ends; an ordinary user gets what the
 * kernel allows him, and *ready says what that is.
 */
void confine(const struct control_configure *c, struct control_ready *ready);

#endif
