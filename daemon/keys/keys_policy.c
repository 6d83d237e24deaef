/* SPDX-License-Identifier: ISC */
/*
 * The system calls that execd-keys needs once it has its keys or CAs: it reads
 * one channel, computes, and answers on that channel.
 */
#include "keys_policy.h"

#include "filter_rows.h"
#include "util.h"

static const struct filter_rule rules[] = {
	FILTER_CHANNEL,
	FILTER_MEMORY,
	FILTER_SELF,
	FILTER_TRIED,
#if EXECD_SANITIZED
	FILTER_SANITIZER,
#endif
};

int
policy_load(void)
{
	return filter_load(rules, nitems(rules));
}
