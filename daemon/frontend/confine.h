/* SPDX-License-Identifier: ISC */
/*
 * Confines the front-end before it reads a byte of a client.
 */
#ifndef CONFINE_H
#define CONFINE_H

#include "offer.h"

/*
 * Called when everything has been opened and loaded. As root (`drop`) every
 * step must succeed, or the program ends. For an ordinary user the steps that
 * the kernel permits are made. *ready says which steps succeeded.
 */
void confine(const struct offer *offer, struct control_ready *ready);

#endif
