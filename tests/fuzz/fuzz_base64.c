/* SPDX-License-Identifier: ISC */
/*
 * base64: what decodes is the one text of its bytes; any bytes come back.
 * Both sides get exactly the room that the header promises to be enough.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base64.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Encoded again, the bytes are the text they came from. */
static void
check_encode(const void *bytes, size_t n, const char *text, size_t len)
{
	_cleanup_free_ char *again = xmalloc(base64_encoded_len(n));

	assert(base64_encoded_len(n) == len);
	assert(base64_encode(again, bytes, n) == len);
	assert(len == 0 || memcmp(again, text, len) == 0);
}

static void
check_error_text(const char *error, const char *text, size_t len)
{
	unsigned symbol;
	size_t offset, said;

	assert(memchr(error, '\0', BASE64_ERROR_MAX) != NULL);
	if (strcmp(error, "Invalid padding") == 0)
		return;
	if (sscanf(error, "Invalid input length: %zu", &said) == 1) {
		assert(said == len);
		return;
	}
	if (sscanf(error, "Invalid symbol %u, offset %zu.", &symbol, &offset) !=
	    2)
		assert(sscanf(error, "Invalid last symbol %u, offset %zu.",
			   &symbol, &offset) == 2);
	assert(offset < len && (unsigned char)text[offset] == symbol);
}

static void
check_decode(const char *text, size_t len)
{
	_cleanup_free_ uint8_t *bytes = xmalloc(base64_decoded_max(len));
	char error[BASE64_ERROR_MAX];
	ssize_t n;

	memset(error, 'x', sizeof(error));
	n = base64_decode(bytes, text, len, error);
	assert(
	    n == -EBADMSG || (n >= 0 && (size_t)n <= base64_decoded_max(len)));
	if (n < 0)
		check_error_text(error, text, len);
	else
		check_encode(bytes, (size_t)n, text, len);
}

static void
check_bytes(const uint8_t *data, size_t len)
{
	size_t room = base64_encoded_len(len);
	_cleanup_free_ char *text = xmalloc(room);
	_cleanup_free_ uint8_t *bytes = xmalloc(base64_decoded_max(room));
	char error[BASE64_ERROR_MAX];

	assert(base64_encode(text, data, len) == room);
	assert(base64_decode(bytes, text, room, error) == (ssize_t)len);
	assert(len == 0 || memcmp(bytes, data, len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	check_decode((const char *)data, len);
	check_bytes(data, len);
	return 0;
}
