/* SPDX-License-Identifier: ISC */
/*
 * One epoll set for the whole broker. A source is embedded in its owner.
 */
#ifndef EVENT_SOURCE_H
#define EVENT_SOURCE_H

#include <stdint.h>

struct source {
	int fd; /* -1: not watched */
	void (*ready)(struct source *s, uint32_t events);
};

/* The object that holds source `s` as `member`. */
#define SOURCE_OWNER(s, type, member)                                          \
	((type *)(void *)((char *)(s)-offsetof(type, member)))

/* Makes the epoll set. 0 or -errno. */
int source_init(void);

/* Watches fd, which the source owns from now on. 0 or -errno. */
int source_add(struct source *s, int fd, uint32_t events,
    void (*ready)(struct source *s, uint32_t events));
void source_set_events(struct source *s, uint32_t events);

/* Stops watching and closes. Safe inside any ready function: events that
 * were already fetched for it are dropped. */
void source_remove(struct source *s);

/* The same, but its descriptor is the caller's then; -1: it had none. */
int source_detach(struct source *s);

/* Waits at most timeout_ms (-1: for ever) and calls what is ready. How many
 * were, or -errno. */
int source_dispatch(int timeout_ms);

#endif
