/* SPDX-License-Identifier: ISC */
/*
 * Sockets that systemd bound and hands over (sd_listen_fds(3), the protocol
 * as documented there; without its library).
 */
#ifndef ACTIVATION_H
#define ACTIVATION_H

/* Notes what was handed over, and that children must not have it. Before any
 * descriptor is opened or the environment is passed on. */
void activation_init(void);

/* A copy, the caller's, of the socket of that name (FileDescriptorName=).
 * -ENOENT: there is none. */
int activation_find(const char *name);

#endif
