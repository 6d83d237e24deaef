/* SPDX-License-Identifier: ISC */
/*
 * Descriptors that the broker leaves for the next one. Each has a name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dispose.h"
#include "root.h"
#include "saved.h"
#include "util.h"

/* Listeners, and some more. */
#define STORE_MAX 256

static struct stored {
	int fd;
	bool used;			   /* by the current broker */
	char name[CONTROL_STORE_NAME_MAX]; /* "": the place is free */
} all[STORE_MAX];

static struct stored *
find(const char *name)
{
	for (size_t i = 0; i < nitems(all); i++)
		if (strcmp(all[i].name, name) == 0)
			return &all[i];
	return NULL;
}

int
store_find(const char *name)
{
	struct stored *s = find(name);

	if (s == NULL || name[0] == '\0')
		return -1;
	s->used = true;
	return s->fd;
}

static void
forget(struct stored *s)
{
	dispose(&s->fd, 1);
	s->name[0] = '\0';
}

int
store_keep(const char *name, int fd)
{
	struct stored *s = find(name);

	if (name[0] == '\0')
		return -EINVAL;
	if (s != NULL)
		forget(s);
	if (fd < 0)
		return 0;
	s = find("");
	if (s == NULL)
		return -ENOSPC;
	s->fd = fd;
	s->used = true;
	snprintf(s->name, sizeof(s->name), "%s", name);
	return 0;
}

void
store_save(struct saved *s)
{
	uint32_t n = 0;

	for (size_t i = 0; i < nitems(all); i++)
		n += all[i].name[0] != '\0';
	SAVE(s, n);
	for (struct stored *at = all; n > 0 && at < all + nitems(all); at++) {
		if (s->mode != SAVED_READ && at->name[0] == '\0')
			continue;
		saved_fd(s, &at->fd);
		SAVE(s, at->used);
		saved_text(s, at->name, sizeof(at->name));
		n--;
	}
}

void
store_begin(void)
{
	for (size_t i = 0; i < nitems(all); i++)
		all[i].used = false;
}

void
store_drop_unused(void)
{
	for (size_t i = 0; i < nitems(all); i++)
		if (all[i].name[0] != '\0' && !all[i].used)
			forget(&all[i]);
}
