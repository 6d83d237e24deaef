/* SPDX-License-Identifier: ISC */
/*
 * Limits a rate in bytes per second. It is a bucket that fills with time; one
 * read may overdraw it. Plain C; the caller passes the time.
 */
#pragma once

#include "base.h"

#define RATE_MAX (UINT64_C(1) << 40)

struct rate {
	uint64_t per_second; /* 0: no limit */
	int64_t left;	     /* bytes; negative: overdrawn */
	int64_t filled_ms;   /* time in ms for which `left` is right */
};

/*
 * The bucket starts full, with the bytes of one second. A rate above RATE_MAX
 * is lowered to it. now is in ms, of a clock that never goes back.
 */
void rate_init(struct rate *r, uint64_t per_second, int64_t now);

/* Tells whether more may be read now. */
bool rate_permits(struct rate *r, int64_t now);

void rate_spend(struct rate *r, size_t bytes);

/*
 * Returns the ms until rate_permits() is true; at least 1. Only with a limit.
 */
uint64_t rate_wait_ms(const struct rate *r);
