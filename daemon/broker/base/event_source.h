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

/* Makes the epoll set. Returns 0 or -errno. */
int event_source_init(void);

/* Watches fd, which then belongs to the source. Returns 0 or -errno. */
int event_source_add(struct event_source *s, int fd, uint32_t events,
    void (*ready)(struct event_source *s, uint32_t events));
void event_source_set_events(struct event_source *s, uint32_t events);

/* Stops watching, and closes the descriptor. This is safe in any ready
 * function: events of the source that were fetched already are dropped. */
void event_source_remove(struct event_source *s);

/* Stops watching. Returns the descriptor, which is then the caller's, or -1 if
 * there was none. */
int event_source_detach(struct event_source *s);

/* Waits at most timeout_ms (-1: for ever), and calls the functions of ready
 * sources. Returns how many there were, or -errno. */
int event_source_dispatch(int timeout_ms);

/*
 * Closes channels whose other end is not trusted (dispose.h).
 */

/* Closes our end. No close makes the caller wait: unread messages may also
 * bring descriptors. -1 is skipped. */
void dispose_channel(int fd);

#endif
