/* SPDX-License-Identifier: ISC */
/*
 * What the files of the front-end's requests share.
 */
#ifndef REQUESTS_PARTS_H
#define REQUESTS_PARTS_H

#include "control.h"
#include "requests.h"

/* Decodes a request. The caller returns -EBADMSG on failure. */
#define REQUEST(type, payload, packet, len)                                    \
	do {                                                                   \
		if (control_get(packet, len, type, payload) < 0)               \
			return -EBADMSG;                                       \
	} while (0)

/* In requests_session.c. *fd is the runner's end of a session channel. It stays
 * the caller's, unless it is -1 afterwards. These return 0, or as
 * request_take(). */
int request_open(struct broker *m, const uint8_t *packet, size_t len, int *fd);
int request_resume(
    struct broker *m, const uint8_t *packet, size_t len, int *fd);
int request_watch(struct broker *m, const uint8_t *packet, size_t len, int *fd);

/* Returns the listener with that id, or NULL if a reload has closed it. */
struct listener *request_listener(const struct broker *m, uint32_t id);

#endif
