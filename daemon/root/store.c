/* SPDX-License-Identifier: ISC */
/*
 * Descriptors that the broker leaves for the next one. Each has a name.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dispose.h"
#include "queue.h"
#include "root.h"
#include "saved.h"
#include "util.h"

/* Listeners, and some more. */
#define STORE_MAX 256

struct stored {
	TAILQ_ENTRY(stored) link; /* all */
	int fd;
	bool used; /* by the current broker */
	char name[CONTROL_STORE_NAME_MAX];
};

static TAILQ_HEAD(, stored) all = TAILQ_HEAD_INITIALIZER(all);
static unsigned count;

static struct stored *
find(const char *name)
{
	struct stored *s;

	TAILQ_FOREACH (s, &all, link)
		if (strcmp(s->name, name) == 0)
			return s;
	return NULL;
}

int
store_find(const char *name)
{
	struct stored *s = find(name);

	if (s == NULL)
		return -1;
	s->used = true;
	return s->fd;
}

static void
forget(struct stored *s)
{
	if (s == NULL)
		return;
	dispose(&s->fd, 1);
	TAILQ_REMOVE(&all, s, link);
	count--;
	free(s);
}

int
store_keep(const char *name, int fd)
{
	struct stored *s;

	forget(find(name));
	if (fd < 0)
		return 0;
	if (count == STORE_MAX)
		return -ENOSPC;
	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	s->used = true;
	snprintf(s->name, sizeof(s->name), "%s", name);
	TAILQ_INSERT_TAIL(&all, s, link);
	count++;
	return 0;
}

void
store_save(struct saved *s)
{
	struct stored *at = TAILQ_FIRST(&all);
	uint32_t n = count;

	SAVE(s, n);
	for (; n > 0 && !s->failed; n--) {
		if (s->mode == SAVED_READ) {
			at = xcalloc(1, sizeof(*at));
			TAILQ_INSERT_TAIL(&all, at, link);
			count++;
		}
		saved_fd(s, &at->fd);
		SAVE(s, at->used);
		saved_text(s, at->name, sizeof(at->name));
		at = TAILQ_NEXT(at, link);
	}
}

void
store_begin(void)
{
	struct stored *s;

	TAILQ_FOREACH (s, &all, link)
		s->used = false;
}

void
store_drop_unused(void)
{
	struct stored *s, *next;

	for (s = TAILQ_FIRST(&all); s != NULL; s = next) {
		next = TAILQ_NEXT(s, link);
		if (!s->used)
			forget(s);
	}
}
