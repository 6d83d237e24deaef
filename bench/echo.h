/* SPDX-License-Identifier: ISC */
/*
 * Round trips through a command that writes what it reads.
 */
#pragma once

#include "figures.h"
#include "peer.h"

/* Starts `cat` in the peer's session, once. */
void echo_start(struct peer *p);

/* Makes `count` round trips of load.size bytes, 32 where that is 0, and adds
 * their times, from the process/write to the last byte of output; f may be
 * NULL. */
void echo_run(struct peer *p, uint64_t count, struct figures *f);
