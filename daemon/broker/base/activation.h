/* SPDX-License-Identifier: ISC */
/*
 * Sockets that systemd bound and passes to execd (sd_listen_fds(3), the
 * protocol as documented there; without its library).
 */
#ifndef ACTIVATION_H
#define ACTIVATION_H

/* Notes the sockets that were passed, and keeps them from children. Must be
 * called before any descriptor is opened and before the environment is passed
 * on. */
void activation_init(void);

/* Returns a copy, the caller's, of the socket of that name
 * (FileDescriptorName=), or -ENOENT. */
int activation_find(const char *name);

#endif
