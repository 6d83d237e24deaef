/* SPDX-License-Identifier: ISC */
#include "base64.h"

#include "base.h"
#include "base64_wide.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
base64_encode(char *dst, const void *src, size_t n)
{
	size_t wide = base64_encode_wide(dst, src, n);
	/* src may be NULL when n is 0, so nothing is added to it then. */
	const uint8_t *p = wide > 0 ? (const uint8_t *)src + wide : src;
	char *at = dst + wide / 3 * 4;

	n -= wide;
	for (; n >= 3; n -= 3, p += 3) {
		uint32_t v = (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];

		*at++ = alphabet[v >> 18];
		*at++ = alphabet[v >> 12 & 63];
		*at++ = alphabet[v >> 6 & 63];
		*at++ = alphabet[v & 63];
	}
	if (n > 0) {
		uint32_t v =
		    (uint32_t)p[0] << 16 | (n > 1 ? (uint32_t)p[1] << 8 : 0);

		*at++ = alphabet[v >> 18];
		*at++ = alphabet[v >> 12 & 63];
		*at++ = n > 1 ? alphabet[v >> 6 & 63] : '=';
		*at++ = '=';
	}
	return (size_t)(at - dst);
}

static int
value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Checks the padding. `data` is the number of characters before it. The
 * messages are those of the peer's decoder. */
static int
check_end(size_t data, size_t n, char *error)
{
	size_t padding = n - data, rest = data % 4;

	if (padding > 0 && (rest < 2 || (rest == 3 && padding == 2)))
		snprintf(error, BASE64_ERROR_MAX,
		    "Invalid symbol 61, offset %zu.", data);
	else if (rest == 1)
		snprintf(
		    error, BASE64_ERROR_MAX, "Invalid input length: %zu", n);
	else if (n % 4 != 0)
		snprintf(error, BASE64_ERROR_MAX, "Invalid padding");
	else
		return 0;
	return -EBADMSG;
}

ssize_t
base64_decode(
    void *dst, const char *src, size_t n, char error[BASE64_ERROR_MAX])
{
	size_t data = n, i = base64_decode_wide(dst, src, n);
	uint8_t *at = i > 0 ? (uint8_t *)dst + i / 4 * 3 : dst;
	uint32_t v = 0;

	while (data > 0 && n - data < 2 && src[data - 1] == '=')
		data--;
	for (; i < data; i++) {
		int d = value(src[i]);

		if (d < 0) {
			snprintf(error, BASE64_ERROR_MAX,
			    "Invalid symbol %u, "
			    "offset %zu.",
			    (unsigned char)src[i], i);
			return -EBADMSG;
		}
		v = v << 6 | (uint32_t)d;
		if (i % 4 == 3) {
			*at++ = (uint8_t)(v >> 16);
			*at++ = (uint8_t)(v >> 8);
			*at++ = (uint8_t)v;
			v = 0;
		}
	}
	if (check_end(data, n, error) < 0)
		return -EBADMSG;
	if (data % 4 == 0)
		return at - (uint8_t *)dst;
	if (v & (data % 4 == 2 ? 0xf : 0x3)) {
		snprintf(error, BASE64_ERROR_MAX,
		    "Invalid last symbol %u, "
		    "offset %zu.",
		    (unsigned char)src[data - 1], data - 1);
		return -EBADMSG;
	}
	if (data % 4 == 2) {
		*at++ = (uint8_t)(v >> 4);
	} else {
		*at++ = (uint8_t)(v >> 10);
		*at++ = (uint8_t)(v >> 2);
	}
	return at - (uint8_t *)dst;
}

ssize_t
base64_decode_url(const char *src, size_t n, uint8_t **bytes)
{
	size_t padded = (n + 3) / 4 * 4;
	_cleanup_free_ char *text = xmalloc(padded + 1);
	char error[BASE64_ERROR_MAX];

	*bytes = NULL;
	for (size_t i = 0; i < n; i++) {
		if (src[i] == '+' || src[i] == '/' || src[i] == '=')
			return -EBADMSG;
		text[i] = src[i];
		if (src[i] == '-')
			text[i] = '+';
		else if (src[i] == '_')
			text[i] = '/';
	}
	memset(text + n, '=', padded - n);
	*bytes = xmalloc(base64_decoded_max(padded) + 1);
	return base64_decode(*bytes, text, padded, error);
}
