/* SPDX-License-Identifier: ISC */
/*
 * What the simulators of compromised programs share: random choices that can
 * be repeated, and the small files beside the program by which the test and
 * its many short lives speak with each other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the test wrote into `settings`: "SEED LIVES MESSAGES". */
struct rogue_settings {
	unsigned seed;
	unsigned lives;
	unsigned long messages; /* in each life, on each channel */
};

/* Reads them and counts this life in `life`; the seed depends on both. */
unsigned rogue_begin(struct rogue_settings *s);

/* A number below n. */
uint32_t rogue_pick(uint32_t n);

/* Bytes of no meaning. */
void rogue_fill(void *p, size_t n);

/* A small file beside the program: whole content, NUL-terminated. */
bool rogue_load(const char *name, char *text, size_t cap);
void rogue_store(const char *name, const char *text);

/* Sends a packet with copies of a descriptor, up to 253 (SCM_MAX_FD); what the
 * peer makes of it is not asked. False: the channel is at its end. */
bool rogue_send(int channel, const void *p, size_t n, size_t nfds);

/* A packet of no meaning, of a random length, to the channel. */
bool rogue_send_anything(int channel);

/* One line on the log, which is execd's. */
__attribute__((format(printf, 1, 2))) void rogue_say(const char *fmt, ...);
