/* SPDX-License-Identifier: ISC */
/* Text that clients wrote, for records of fixed size. */
#include "audit_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "siphash.h"
#include "table.h"

#define MARK	   " [cut "
#define MARK_CHARS (sizeof(MARK "0123456789abcdef]") - 1)

bool
audit_copy(char *to, size_t room, struct slice text)
{
	size_t n = strnlen(text.ptr, text.len);

	if (n >= room)
		n = room - 1;
	memcpy(to, text.ptr, n);
	to[n] = '\0';
	return n < text.len;
}

static bool
ends_like_a_mark(const char *text)
{
	size_t n = strlen(text);

	return n >= MARK_CHARS &&
	       strncmp(text + n - MARK_CHARS, MARK, strlen(MARK)) == 0;
}

/* Returns how much of the first n bytes is whole characters. */
static size_t
whole_characters(const char *text, size_t n)
{
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

void
audit_copy_id(char to[CONTROL_PROCESS_MAX], struct slice id)
{
	size_t most = CONTROL_PROCESS_MAX - 1 - MARK_CHARS, n;

	if (!audit_copy(to, CONTROL_PROCESS_MAX, id) && !ends_like_a_mark(to))
		return;
	n = strlen(to);
	if (n > most)
		n = whole_characters(to, most);
	snprintf(to + n, CONTROL_PROCESS_MAX - n, MARK "%016" PRIx64 "]",
	    siphash_bytes(id.ptr, id.len));
}
