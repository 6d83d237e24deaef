/* SPDX-License-Identifier: ISC */
/*
 * So many bytes a second, of whatever is counted together: a bucket that
 * fills with time and may be overdrawn by one read. Plain C; the time is the
 * caller's.
 */
#ifndef RATE_H
#define RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATE_MAX (UINT64_C(1) << 40)

struct rate {
	uint64_t per_second; /* 0: no limit */
	int64_t left;	     /* bytes; below zero: overdrawn */
	int64_t filled_ms;   /* when `left` was right */
};

/* Full: a second's worth. More than RATE_MAX is as good as no limit. */
void rate_init(struct rate *r, uint64_t per_second, int64_t now);

/* May there be more now? */
bool rate_permits(struct rate *r, int64_t now);

void rate_spend(struct rate *r, size_t bytes);

/* How long until rate_permits(), in ms; at least 1. */
uint64_t rate_wait_ms(const struct rate *r);

#endif
