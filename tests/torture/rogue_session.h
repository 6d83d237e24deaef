/* SPDX-License-Identifier: ISC */
/*
 * A session channel in the hands of a compromised front-end.
 */
#pragma once

#include <stdbool.h>

#include "control.h"

/* Sends `count` frames, arbitrary ones and good ones out of their order, and
 * drops what is answered. False: the runner hung up. */
bool rogue_session_attack(int channel, unsigned long count);

/* The same as a client that is handed over, well or badly. A channel is at its
 * end afterwards, or was not `fresh`: then it brings no client. */
bool rogue_session_attack_directly(
    int channel, bool fresh, unsigned long count);

/* Says initialize as an honest client would: to resume the session of that id,
 * or for a new one, whose id that is then. False, after saying so: there is
 * none. */
bool rogue_session_begin(int channel, char id[CONTROL_SESSION_ID_MAX]);

/* Then writes one line to the process that echoes lines, and waits for it to
 * come back; `number` counts these calls, the first one starts the process.
 * False, after saying so: it did not. */
bool rogue_session_check(int channel, unsigned number);
