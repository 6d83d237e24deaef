/*
 * Files that stay open without a descriptor: in flight, each in a message
 * between two sockets of our own that nobody receives before it is wanted
 * (unix(7), SCM_RIGHTS). The kernel permits each user as many as RLIMIT_NOFILE
 * says, beside those that have descriptors.
 */
#ifndef INFLIGHT_H
#define INFLIGHT_H

#include <stdint.h>

/* So many share two descriptors. Messages wait in line, so a higher number
 * makes taking one out dearer: half of them pass by. */
#define INFLIGHT_BOX 32

struct inflight {
	struct inflight_box *boxes; /* owned */
	uint32_t count;		    /* of boxes, with those that are empty */
	uint32_t descriptors;	    /* that they take now */
};

#define INFLIGHT_INITIALIZER                                                   \
	{                                                                      \
		.boxes = NULL                                                  \
	}

/* Sends fd off and closes it. Returns its key, or -errno, and then fd is still
 * the caller's: -ETOOMANYREFS this user has too many under way, -EMFILE. */
int inflight_put(struct inflight *f, int fd);

/* Back again, another number of the same file, CLOEXEC and the caller's. One
 * descriptor must be free: -EMFILE, and it stays where it is. */
int inflight_take(struct inflight *f, int key);

/* Closes all of them. */
void inflight_clear(struct inflight *f);

#endif
