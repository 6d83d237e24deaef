/* SPDX-License-Identifier: ISC */
/* The guess whether something was denied to a command. */
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

/*
 * Writes the chunks of the given streams into text, in lower case, and returns
 * its length. text has room for all of them.
 */
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

/*
 * Each stream is searched alone and all are searched together: a word may be
 * split by a chunk of another stream, or may appear only when chunks are
 * joined.
 */
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
