/* SPDX-License-Identifier: ISC */
/*
 * base64 with NEON, which every 64-bit ARM processor has. Its loads and stores
 * separate every third or fourth byte, and it can look up a table of 64 bytes.
 */
#include "base64_wide.h"

#ifdef __aarch64__

#include <arm_neon.h>

static const uint8_t letters[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "abcdefghijklmnopqrstuvwxyz"
				   "0123456789+/";

/* Encodes 48 bytes per step. */
size_t
base64_encode_wide(char *dst, const uint8_t *src, size_t n)
{
	const uint8x16x4_t table = vld1q_u8_x4(letters);
	const uint8x16_t six = vdupq_n_u8(0x3f);
	size_t i = 0;

	for (; n - i >= 48; i += 48, dst += 64) {
		uint8x16x3_t in = vld3q_u8(src + i);
		uint8x16x4_t v;

		v.val[0] = vshrq_n_u8(in.val[0], 2);
		v.val[1] = vandq_u8(
		    vsliq_n_u8(vshrq_n_u8(in.val[1], 4), in.val[0], 4), six);
		v.val[2] = vandq_u8(
		    vsliq_n_u8(vshrq_n_u8(in.val[2], 6), in.val[1], 2), six);
		v.val[3] = vandq_u8(in.val[2], six);
		for (int k = 0; k < 4; k++)
			v.val[k] = vqtbl4q_u8(table, v.val[k]);
		vst4q_u8((uint8_t *)dst, v);
	}
	return i;
}

/* Sets all bits of each byte that lies between first and last. */
static uint8x16_t
is_in(uint8x16_t c, uint8_t first, uint8_t last)
{
	return vcleq_u8(vsubq_u8(c, vdupq_n_u8(first)),
	    vdupq_n_u8((uint8_t)(last - first)));
}

/* Returns the values of 16 characters. *bad marks invalid characters. */
static uint8x16_t
values(uint8x16_t c, uint8x16_t *bad)
{
	uint8x16_t upper = is_in(c, 'A', 'Z'), lower = is_in(c, 'a', 'z');
	uint8x16_t digit = is_in(c, '0', '9');
	uint8x16_t plus = vceqq_u8(c, vdupq_n_u8('+'));
	uint8x16_t slash = vceqq_u8(c, vdupq_n_u8('/'));
	uint8x16_t shift = vandq_u8(upper, vdupq_n_u8((uint8_t)-65));

	shift = vbslq_u8(lower, vdupq_n_u8((uint8_t)-71), shift);
	shift = vbslq_u8(digit, vdupq_n_u8(4), shift);
	shift = vbslq_u8(plus, vdupq_n_u8(19), shift);
	shift = vbslq_u8(slash, vdupq_n_u8(16), shift);
	*bad = vorrq_u8(*bad, vceqq_u8(shift, vdupq_n_u8(0)));
	return vaddq_u8(c, shift);
}

/* Decodes 64 characters per step. */
size_t
base64_decode_wide(uint8_t *dst, const char *src, size_t n)
{
	size_t i = 0;

	for (; n - i >= 64; i += 64, dst += 48) {
		uint8x16x4_t in = vld4q_u8((const uint8_t *)src + i);
		uint8x16_t bad = vdupq_n_u8(0);
		uint8x16x3_t out;

		for (int k = 0; k < 4; k++)
			in.val[k] = values(in.val[k], &bad);
		if (vmaxvq_u8(bad) != 0)
			break;
		out.val[0] = vorrq_u8(
		    vshlq_n_u8(in.val[0], 2), vshrq_n_u8(in.val[1], 4));
		out.val[1] = vorrq_u8(
		    vshlq_n_u8(in.val[1], 4), vshrq_n_u8(in.val[2], 2));
		out.val[2] = vorrq_u8(vshlq_n_u8(in.val[2], 6), in.val[3]);
		vst3q_u8(dst, out);
	}
	return i;
}

#endif
