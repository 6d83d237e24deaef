/* SPDX-License-Identifier: ISC */
/*
 * SipHash-2-4 with 128-bit output (Aumasson and Bernstein, 2012). A keyed hash
 * for tables whose keys may be chosen by a hostile peer.
 */
#pragma once

#include "base.h"

struct siphash_key {
	uint64_t k0, k1;
};

/* Returns the random key of this process, which the first call makes. */
const struct siphash_key *siphash_process_key(void);

void siphash128(
    const struct siphash_key *key, const void *p, size_t n, uint64_t out[2]);

/* The first half of it, with the key of this process. */
uint64_t siphash_bytes(const void *p, size_t n);
