/* SPDX-License-Identifier: ISC */
#include "rate.h"

void
rate_init(struct rate *r, uint64_t per_second, int64_t now)
{
	if (per_second > RATE_MAX)
		per_second = RATE_MAX;
	*r = (struct rate){ .per_second = per_second,
		.left = (int64_t)per_second,
		.filled_ms = now };
}

/* Adds what the elapsed whole milliseconds are worth. */
static void
fill(struct rate *r, int64_t now)
{
	uint64_t ms = (uint64_t)(now - r->filled_ms);
	int64_t full = (int64_t)r->per_second;
	int64_t more;

	if (ms == 0)
		return;
	/* At most 60 seconds are counted, which also avoids an overflow. */
	more = ms >= 60000 ? full * 60
			   : full / 1000 * (int64_t)ms +
				 full % 1000 * (int64_t)ms / 1000;
	r->left = full - r->left > more ? r->left + more : full;
	r->filled_ms = now;
}

bool
rate_permits(struct rate *r, int64_t now)
{
	if (r->per_second == 0)
		return true;
	fill(r, now);
	return r->left > 0;
}

void
rate_spend(struct rate *r, size_t bytes)
{
	if (r->per_second > 0)
		r->left -= (int64_t)bytes;
}

uint64_t
rate_wait_ms(const struct rate *r)
{
	uint64_t missing = r->left > 0 ? 0 : (uint64_t)-r->left + 1;

	return missing / r->per_second * 1000 +
	       missing % r->per_second * 1000 / r->per_second + 1;
}
