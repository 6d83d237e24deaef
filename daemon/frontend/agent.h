/* SPDX-License-Identifier: ISC */
/*
 * The agent of a proxy in front of execd (execd.conf(5), `serve`). Whoever
 * connects gets one line, and no byte of his is looked at. So there is nothing
 * that could be admitted or penalised, and a host under attack still answers.
 */
#ifndef AGENT_H
#define AGENT_H

#include <stdint.h>

/* The broker says how much this host can take. */
void agent_set_room(uint8_t percent);

/* Answers, and takes the descriptor over. */
void agent_take(int fd);

/* Closes the connections whose other side has not closed yet. */
void agent_end(void);

#endif
