/* SPDX-License-Identifier: ISC */
/* The loop of a test whose rows are resolutions. */
#pragma once

#include "resolve_case.h"

/* "!..." is an error with that text. */
static inline bool
check_row(const struct resolve_case *c)
{
	struct case_run *run = xcalloc(1, sizeof(*run));
	const char *fs = c->fs ? c->fs : "/ws/.git/";
	struct buf b;
	bool same;

	fake_fs_init(&run->fs, fs, strlen(fs));
	case_resolve(run, c);
	buf_init(&b, 1 << 20);
	if (run->err == -EINVAL)
		buf_puts(&b, "!");
	if (run->err < 0)
		buf_puts(
		    &b, run->err == -EINVAL ? run->error : strerror(-run->err));
	else
		plan_text(&b, &run->plan);
	buf_put_u8(&b, '\0');
	same = strcmp((char *)b.data, c->want) == 0;
	if (!same)
		print_error("%s: %s: %s\n  got  %s\n  want %s\n", c->rule, fs,
		    c->entries ? c->entries : "", (char *)b.data, c->want);
	buf_clear(&b);
	case_clear(run);
	free(run);
	return same;
}

static inline void
check_rows(const struct resolve_case *rows, size_t n)
{
	size_t wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += !check_row(&rows[i]);
	assert_int_equal(wrong, 0);
}
