/*
 * A session channel in the hands of a compromised front-end.
 */
#ifndef ROGUE_SESSION_H
#define ROGUE_SESSION_H

#include <stdbool.h>

/* Sends `count` frames, arbitrary ones and good ones out of their order, and
 * drops what is answered. False: the runner hung up. */
bool rogue_session_attack(int channel, unsigned long count);

/* The same as a client that is handed over, well or badly. A channel is at its
 * end afterwards, or was not `fresh`: then it brings no client. */
bool rogue_session_attack_directly(
    int channel, bool fresh, unsigned long count);

/* Attaches as an honest client would, writes one line to the process that
 * echoes lines, and waits for it to come back; `number` counts these calls,
 * the first one starts the process. False, after saying so: it did not. */
bool rogue_session_check(int channel, const char *id, unsigned number);

#endif
