/* SPDX-License-Identifier: ISC */
/*
 * base64 in steps of many bytes: with SSSE3 and AVX2, with NEON, or not at all.
 */
#include "base64_wide.h"

#if defined(__x86_64__)

/*
 * SSSE3 and AVX2. Both widths use the same method.
 *
 * To encode, three bytes are spread over a lane of four bytes, and two
 * multiplications move each group of six bits into a byte of its own. A table
 * of 16 entries gives the number that turns the value into its letter. Decoding
 * does the reverse. The upper four bits of a character select the range of the
 * alphabet that it must be in.
 */
#include <immintrin.h>

/* Six-bit values fall into 14 classes: 0 for a..z, 1 to 10 for the digits, then
 * '+', '/' and A..Z. The table holds what is added for each class. */
#define LETTER_SHIFTS                                                          \
	71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0

/* Tables indexed by the upper four bits of a character: the first and the last
 * valid character, and what is added to get the value. '+' is handled
 * separately, because its upper bits are those of '/'. */
#define RANGE_FIRST 1, 1, '/', '0', 'A', 'P', 'a', 'p', 1, 1, 1, 1, 1, 1, 1, 1
#define RANGE_LAST  0, 0, '/', '9', 'O', 'Z', 'o', 'z', 0, 0, 0, 0, 0, 0, 0, 0
#define RANGE_SHIFT 0, 0, 16, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0
#define PLUS_SHIFT  3 /* added for '+', beyond what '/' gets */

/* The order in which bytes are shuffled, for 16 bytes. */
#define SPREAD 1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10
#define GATHER 2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1

#define SSSE3 __attribute__((target("ssse3")))
#define AVX2  __attribute__((target("avx2")))

SSSE3 static __m128i
letters_16(__m128i in)
{
	const __m128i shifts = _mm_setr_epi8(LETTER_SHIFTS);
	__m128i odd =
	    _mm_mulhi_epu16(_mm_and_si128(in, _mm_set1_epi32(0x0fc0fc00)),
		_mm_set1_epi32(0x04000040));
	__m128i even =
	    _mm_mullo_epi16(_mm_and_si128(in, _mm_set1_epi32(0x003f03f0)),
		_mm_set1_epi32(0x01000010));
	__m128i v = _mm_or_si128(odd, even);
	__m128i upper = _mm_cmpgt_epi8(_mm_set1_epi8(26), v);
	__m128i class = _mm_or_si128(_mm_subs_epu8(v, _mm_set1_epi8(51)),
	    _mm_and_si128(upper, _mm_set1_epi8(13)));

	return _mm_add_epi8(v, _mm_shuffle_epi8(shifts, class));
}

/* Each step reads 16 bytes and encodes 12 of them. */
SSSE3 static size_t
encode_ssse3(char *dst, const uint8_t *src, size_t n)
{
	const __m128i spread = _mm_setr_epi8(SPREAD);
	size_t i = 0;

	for (; n - i >= 16; i += 12, dst += 16) {
		__m128i in = _mm_loadu_si128((const __m128i *)(src + i));

		_mm_storeu_si128(
		    (__m128i *)dst, letters_16(_mm_shuffle_epi8(in, spread)));
	}
	return i;
}

AVX2 static __m256i
letters_32(__m256i in)
{
	const __m256i shifts = _mm256_setr_epi8(LETTER_SHIFTS, LETTER_SHIFTS);
	__m256i odd = _mm256_mulhi_epu16(
	    _mm256_and_si256(in, _mm256_set1_epi32(0x0fc0fc00)),
	    _mm256_set1_epi32(0x04000040));
	__m256i even = _mm256_mullo_epi16(
	    _mm256_and_si256(in, _mm256_set1_epi32(0x003f03f0)),
	    _mm256_set1_epi32(0x01000010));
	__m256i v = _mm256_or_si256(odd, even);
	__m256i upper = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), v);
	__m256i class =
	    _mm256_or_si256(_mm256_subs_epu8(v, _mm256_set1_epi8(51)),
		_mm256_and_si256(upper, _mm256_set1_epi8(13)));

	return _mm256_add_epi8(v, _mm256_shuffle_epi8(shifts, class));
}

/* Each step reads 28 bytes and encodes 24 of them. The two halves of the
 * register are loaded separately, because a shuffle does not cross them. */
AVX2 static size_t
encode_avx2(char *dst, const uint8_t *src, size_t n)
{
	const __m256i spread = _mm256_setr_epi8(SPREAD, SPREAD);
	size_t i = 0;

	for (; n - i >= 28; i += 24, dst += 32) {
		__m128i low = _mm_loadu_si128((const __m128i *)(src + i));
		__m128i high = _mm_loadu_si128((const __m128i *)(src + i + 12));
		__m256i in = _mm256_set_m128i(high, low);

		_mm256_storeu_si256((__m256i *)dst,
		    letters_32(_mm256_shuffle_epi8(in, spread)));
	}
	return i;
}

size_t
base64_encode_wide(char *dst, const uint8_t *src, size_t n)
{
	if (__builtin_cpu_supports("avx2"))
		return encode_avx2(dst, src, n);
	if (__builtin_cpu_supports("ssse3"))
		return encode_ssse3(dst, src, n);
	return 0;
}

/* Returns the values of 16 characters. *bad marks invalid characters. */
SSSE3 static __m128i
values_16(__m128i c, __m128i *bad)
{
	const __m128i first = _mm_setr_epi8(RANGE_FIRST);
	const __m128i last = _mm_setr_epi8(RANGE_LAST);
	const __m128i shift = _mm_setr_epi8(RANGE_SHIFT);
	__m128i half = _mm_and_si128(_mm_srli_epi32(c, 4), _mm_set1_epi8(0x0f));
	__m128i plus = _mm_cmpeq_epi8(c, _mm_set1_epi8('+'));
	__m128i outside =
	    _mm_or_si128(_mm_cmplt_epi8(c, _mm_shuffle_epi8(first, half)),
		_mm_cmpgt_epi8(c, _mm_shuffle_epi8(last, half)));

	*bad = _mm_andnot_si128(plus, outside);
	c = _mm_add_epi8(c, _mm_shuffle_epi8(shift, half));
	return _mm_add_epi8(c, _mm_and_si128(plus, _mm_set1_epi8(PLUS_SHIFT)));
}

/* Each step decodes 16 characters. It writes 16 bytes, of which 12 are
 * valid. */
SSSE3 static size_t
decode_ssse3(uint8_t *dst, const char *src, size_t n)
{
	const __m128i gather = _mm_setr_epi8(GATHER);
	size_t i = 0;

	for (; n - i >= 24; i += 16, dst += 12) {
		__m128i bad, v = _mm_loadu_si128((const __m128i *)(src + i));

		v = values_16(v, &bad);
		if (_mm_movemask_epi8(bad) != 0)
			break;
		v = _mm_maddubs_epi16(v, _mm_set1_epi32(0x01400140));
		v = _mm_madd_epi16(v, _mm_set1_epi32(0x00011000));
		_mm_storeu_si128((__m128i *)dst, _mm_shuffle_epi8(v, gather));
	}
	return i;
}

AVX2 static __m256i
values_32(__m256i c, __m256i *bad)
{
	const __m256i first = _mm256_setr_epi8(RANGE_FIRST, RANGE_FIRST);
	const __m256i last = _mm256_setr_epi8(RANGE_LAST, RANGE_LAST);
	const __m256i shift = _mm256_setr_epi8(RANGE_SHIFT, RANGE_SHIFT);
	__m256i half =
	    _mm256_and_si256(_mm256_srli_epi32(c, 4), _mm256_set1_epi8(0x0f));
	__m256i plus = _mm256_cmpeq_epi8(c, _mm256_set1_epi8('+'));
	__m256i outside = _mm256_or_si256(
	    _mm256_cmpgt_epi8(_mm256_shuffle_epi8(first, half), c),
	    _mm256_cmpgt_epi8(c, _mm256_shuffle_epi8(last, half)));

	*bad = _mm256_andnot_si256(plus, outside);
	c = _mm256_add_epi8(c, _mm256_shuffle_epi8(shift, half));
	return _mm256_add_epi8(
	    c, _mm256_and_si256(plus, _mm256_set1_epi8(PLUS_SHIFT)));
}

/* Each step decodes 32 characters. It writes 32 bytes, of which 24 are
 * valid. */
AVX2 static size_t
decode_avx2(uint8_t *dst, const char *src, size_t n)
{
	const __m256i gather = _mm256_setr_epi8(GATHER, GATHER);
	const __m256i close = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
	size_t i = 0;

	for (; n - i >= 48; i += 32, dst += 24) {
		__m256i bad, v = _mm256_loadu_si256((const __m256i *)(src + i));

		v = values_32(v, &bad);
		if (_mm256_movemask_epi8(bad) != 0)
			break;
		v = _mm256_maddubs_epi16(v, _mm256_set1_epi32(0x01400140));
		v = _mm256_madd_epi16(v, _mm256_set1_epi32(0x00011000));
		v = _mm256_shuffle_epi8(v, gather);
		_mm256_storeu_si256(
		    (__m256i *)dst, _mm256_permutevar8x32_epi32(v, close));
	}
	return i;
}

size_t
base64_decode_wide(uint8_t *dst, const char *src, size_t n)
{
	if (__builtin_cpu_supports("avx2"))
		return decode_avx2(dst, src, n);
	if (__builtin_cpu_supports("ssse3"))
		return decode_ssse3(dst, src, n);
	return 0;
}

#elif defined(__aarch64__)

/*
 * NEON, which every 64-bit ARM processor has. Its loads and stores separate
 * every third or fourth byte, and it can look up a table of 64 bytes.
 */
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

#else

size_t
base64_encode_wide(char *dst, const uint8_t *src, size_t n)
{
	return 0;
}

size_t
base64_decode_wide(uint8_t *dst, const char *src, size_t n)
{
	return 0;
}

#endif
