/* SPDX-License-Identifier: ISC */
/*
 * What this program must not do itself others do for it (enum tls_helper),
 * each behind a channel that the broker gave. This program waits for each
 * answer, and not for long.
 */
#ifndef TLS_HELPER_H
#define TLS_HELPER_H

#include <stdint.h>

#include "control.h"

/* Once, before any channel: `hangs` is told of one that does not answer. */
void helper_init(void (*hangs)(enum tls_helper who));

/* Takes the channels over; -1: there is none. Those before go on for what was
 * made in their epoch, until they are retired. */
void helper_set_channels(const int fds[TLS_HELPERS]);

/* Asks each whether it answers. One that does not is replaced. */
void helper_ask_all(void);

/* Which of them is missing, or has ended: a line; NULL: none. */
const char *helper_reason(void);

/* Ends the channels before the newest ones. */
void helper_retire(void);

/* Which channels are the newest: counts up. */
uint32_t helper_epoch(void);

/*
 * Asks the helper of that epoch and waits. Both structs begin with their
 * serial, which is set here. 0, or after logging it -errno: -ETIMEDOUT, -EPIPE
 * (nobody answers), -EBADMSG.
 */
int helper_ask(enum tls_helper who, uint32_t of_epoch, enum control_type ask,
    void *request, enum control_type type, void *answer);

#endif
