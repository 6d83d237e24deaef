/* SPDX-License-Identifier: ISC */
/*
 * SipHash-2-4 with 128-bit output. tests/unit/test_siphash.c checks it against
 * the test vectors of its authors.
 */
#include "siphash.h"

#ifdef _WIN32
#include <windows.h>

#include <ntsecapi.h>
#else
#include <sys/random.h>
#endif

#define ROTL(x, b) (((x) << (b)) | ((x) >> (64 - (b))))

static void
sip_rounds(uint64_t v[4], int n)
{
	while (n-- > 0) {
		v[0] += v[1];
		v[1] = ROTL(v[1], 13) ^ v[0];
		v[0] = ROTL(v[0], 32);
		v[2] += v[3];
		v[3] = ROTL(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = ROTL(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = ROTL(v[1], 17) ^ v[2];
		v[2] = ROTL(v[2], 32);
	}
}

static uint64_t
load64(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

void
siphash128(
    const struct siphash_key *key, const void *p, size_t n, uint64_t out[2])
{
	const uint8_t *at = p;
	uint64_t v[4] = { 0x736f6d6570736575 ^ key->k0,
		0x646f72616e646f6d ^ key->k1 ^ 0xee,
		0x6c7967656e657261 ^ key->k0, 0x7465646279746573 ^ key->k1 };
	uint64_t m;

	for (size_t left = n; left >= 8; left -= 8, at += 8) {
		m = load64(at, 8);
		v[3] ^= m;
		sip_rounds(v, 2);
		v[0] ^= m;
	}
	m = (uint64_t)n << 56 | load64(at, n % 8);
	v[3] ^= m;
	sip_rounds(v, 2);
	v[0] ^= m;
	v[2] ^= 0xee;
	sip_rounds(v, 4);
	out[0] = v[0] ^ v[1] ^ v[2] ^ v[3];
	v[1] ^= 0xdd;
	sip_rounds(v, 4);
	out[1] = v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool
get_random(void *p, size_t n)
{
#ifdef _WIN32
	return RtlGenRandom(p, (ULONG)n);
#else
	return getrandom(p, n, 0) == (ssize_t)n;
#endif
}

const struct siphash_key *
siphash_process_key(void)
{
	static struct siphash_key key;
	static bool made;

	if (!made) {
		if (!get_random(&key, sizeof(key)))
			log_fatal("no random bytes");
		made = true;
	}
	return &key;
}

uint64_t
siphash_bytes(const void *p, size_t n)
{
	uint64_t out[2];

	siphash128(siphash_process_key(), p, n, out);
	return out[0];
}
