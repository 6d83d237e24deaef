/* SPDX-License-Identifier: ISC */
/*
 * One epoll set for the whole broker. A source is embedded in its owner.
 */
#ifndef EVENT_SOURCE_H
#define EVENT_SOURCE_H

#include <stdint.h>

struct event_source {
	int fd; /* -1: not watched */
	void (*ready)(struct event_source *s, uint32_t events);
};

/* The object that holds source `s` as `member`. */
#define EVENT_SOURCE_OWNER(s, type, member)                                    \
	((type *)(void *)((char *)(s)-offsetof(type, member)))

/* Makes the epoll set. 0 or -errno. */
int event_source_init(void);

/* Watches fd, which the source owns from now on. 0 or -errno. */
int event_source_add(struct event_source *s, int fd, uint32_t events,
    void (*ready)(struct event_source *s, uint32_t events));
void event_source_set_events(struct event_source *s, uint32_t events);

/* Stops watching and closes. Safe inside any ready function: events that
 * were already fetched for it are dropped. */
void event_source_remove(struct event_source *s);

/* The same, but its descriptor is the caller's then; -1: it had none. */
int event_source_detach(struct event_source *s);

/* Waits at most timeout_ms (-1: for ever) and calls what is ready. How many
 * were, or -errno. */
int event_source_dispatch(int timeout_ms);

#endif
