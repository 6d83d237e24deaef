/* SPDX-License-Identifier: ISC */
/*
 * Starts the broker from root's execd.
 */
#ifndef BROKER_CHILD_H
#define BROKER_CHILD_H

#include <sys/types.h>

/* Starts the broker. channel is its end of the channel, which stays the
 * caller's. Returns the pid or -errno. */
pid_t broker_child_start(int channel);

/* This process itself becomes execd-broker, for a command that is no service:
 * execd doctor. Returns only on failure, after printing the error. */
void broker_child_become(void);

#endif
