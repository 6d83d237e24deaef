/* SPDX-License-Identifier: ISC */
/*
 * Lines of the log that a program could not deliver.
 */
#include "base.h"
#include "log_output.h"

static uint64_t
count_lines(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

uint64_t
log_take_undelivered(void)
{
	struct log_queue *q = log_output_queue();
	uint64_t n = log_output_take_lost() + count_lines(q->text, q->len);

	q->len = 0;
	return n;
}

void
log_add_lost(uint64_t lines)
{
	if (lines > 0)
		log_output_queue()->lost += lines;
}
