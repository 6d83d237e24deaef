/* SPDX-License-Identifier: ISC */
/*
 * proxy_header: a header is read inside its bounds and within its limit; it
 * never asks for a byte behind itself, and a piece of it is refused only if the
 * whole is.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "admission.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int
parse_copy(const uint8_t *data, size_t len, struct proxy_header *h)
{
	_cleanup_free_ uint8_t *copy = xmalloc(len ? len : 1);
	const char *why;
	int want;

	memcpy(copy, data, len);
	want = proxy_header_parse(copy, len, h, &why);
	assert(want >= 0 || (want == -EBADMSG && why != NULL));
	assert(want < 0 || why == NULL);
	return want;
}

/* Reads like the front-end: no more than is asked for. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct proxy_header h;
	size_t n = 0;
	int want;

	while ((want = parse_copy(data, n, &h)) > 0) {
		assert(n + (size_t)want <= PROXY_HEADER_MAX);
		for (size_t i = 0; i < (size_t)want && n < len; i++) {
			n++;
			if (i + 1 < (size_t)want)
				assert(parse_copy(data, n, &h) != 0);
		}
		if (n == len)
			break;
	}
	want = parse_copy(data, n, &h);
	assert(want != 0 || h.local || h.from.any.sa_family == AF_INET ||
	       h.from.any.sa_family == AF_INET6);
	return 0;
}
