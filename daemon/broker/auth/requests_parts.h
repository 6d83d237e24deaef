/* SPDX-License-Identifier: ISC */
/*
 * Of the front-end's requests what their files share.
 */
#ifndef REQUESTS_PARTS_H
#define REQUESTS_PARTS_H

#include "control.h"
#include "requests.h"

/* Decodes a request; a failure is the caller's -EBADMSG. */
#define REQUEST(type, payload, packet, len)                                    \
	do {                                                                   \
		if (control_get(packet, len, type, payload) < 0)               \
			return -EBADMSG;                                       \
	} while (0)

/* requests_session.c. *fd is the runner's end of a session channel: the
 * caller's, unless it is -1 then. 0, or as request_take(). */
int request_open(struct broker *m, const uint8_t *packet, size_t len, int *fd);
int request_resume(
    struct broker *m, const uint8_t *packet, size_t len, int *fd);
int request_watch(struct broker *m, const uint8_t *packet, size_t len, int *fd);

#endif
