/*
 * Listening sockets: accepted from, never made here.
 */
#ifndef LISTENER_H
#define LISTENER_H

#include <stdint.h>

/* Takes listening sockets over; index as in CONFIGURE. */
void listener_add(uint32_t index, int fd);

/* The one stdio connection. */
void listener_add_stdio(uint32_t index, int in_fd, int out_fd);

/* No new connections. */
void listener_close_all(void);

#endif
