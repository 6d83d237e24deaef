/* SPDX-License-Identifier: ISC */
/*
 * SipHash-2-4 with 128-bit output (Aumasson, Bernstein 2012): a keyed hash
 * for tables and sets whose keys a hostile peer chooses.
 */
#ifndef SIPHASH_H
#define SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t k0, k1;
};

/* The process's own random key, made at the first call. */
const struct siphash_key *siphash_process_key(void);

void siphash128(
    const struct siphash_key *key, const void *p, size_t n, uint64_t out[2]);

#endif
