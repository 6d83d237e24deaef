/* SPDX-License-Identifier: ISC */
/*
 * The guess that a command was denied something.
 */
#include "denial.h"

#include <ctype.h>
#include <string.h>

#include "util.h"

#define EXIT_SIGSYS 159 /* 128 + SIGSYS */

static const char *const words[] = { "operation not permitted",
	"permission denied", "read-only file system", "seccomp", "sandbox",
	"landlock", "failed to write file" };

static bool
holds_word(const char *text, size_t len)
{
	for (size_t i = 0; i < nitems(words); i++)
		if (memmem(text, len, words[i], strlen(words[i])) != NULL)
			return true;
	return false;
}

/* The streams of a mask, one text, in lower case. */
static size_t
collect(const struct retention *output, unsigned streams, char *text)
{
	struct retention_cursor c = retention_first(output);
	struct retention_chunk chunk;
	size_t len = 0;

	while (retention_next(output, &c, &chunk)) {
		if (!(streams & 1u << chunk.stream))
			continue;
		for (size_t i = 0; i < chunk.len; i++)
			text[len++] = (char)tolower(chunk.data[i]);
	}
	return len;
}

/* A word may be cut in two by another stream's chunk, or put together by it. */
static bool
output_names_denial(const struct retention *output)
{
	static const unsigned sets[] = { 1u << STREAM_STDERR,
		1u << STREAM_STDOUT, ~0u };
	_cleanup_free_ char *text = xmalloc(output->bytes + 1);

	for (size_t i = 0; i < nitems(sets); i++)
		if (holds_word(text, collect(output, sets[i], text)))
			return true;
	return false;
}

bool
denial_is_likely(const struct retention *output, int exit_code)
{
	if (exit_code == 0)
		return false;
	return output_names_denial(output) || exit_code == EXIT_SIGSYS;
}
