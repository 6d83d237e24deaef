/* SPDX-License-Identifier: ISC */
/*
 * Descriptors that the broker leaves for the next one. Each has a number.
 */
#include "dispose.h"
#include "root.h"
#include "saved.h"
#include "util.h"

static int all[] = { -1, -1, -1, -1, -1, -1 };
_Static_assert(nitems(all) == STORED_MAX, "one for each number");

int
store_find(uint32_t number)
{
	return all[number];
}

void
store_keep(uint32_t number, int fd)
{
	dispose(&all[number], 1);
	all[number] = fd;
}

void
store_save(struct saved *s)
{
	for (int i = 0; i < STORED_MAX; i++)
		saved_fd(s, &all[i]);
}
