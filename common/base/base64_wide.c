/* SPDX-License-Identifier: ISC */
#include "base64_wide.h"

#if defined(__x86_64__)

/*
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

#define AVX2 __attribute__((target("avx2")))

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
	return 0;
}

/* Returns the values of 32 characters. *bad marks invalid characters. */
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
	return 0;
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
