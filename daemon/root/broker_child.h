/* SPDX-License-Identifier: ISC */
/*
 * The way from root to the broker.
 */
#ifndef BROKER_CHILD_H
#define BROKER_CHILD_H

#include <sys/types.h>

/* Its pid, or -errno. channel: its end, which stays the caller's. */
pid_t broker_child_start(int channel);

/* This process becomes execd-broker, for what is no service: execd doctor.
 * Returns after printing what is wrong. */
void broker_child_become(void);

#endif
