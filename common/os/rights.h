/* SPDX-License-Identifier: ISC */
/*
 * A descriptor beside the bytes of a stream socket (unix(7), SCM_RIGHTS).
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <sys/types.h>
#include <sys/uio.h>

/* As writev(2); the first byte of it brings fd, which stays the caller's. */
ssize_t rights_send(int sock, struct iovec *iov, int n, int fd);

/*
 * Whoever sends a descriptor to this AF_UNIX socket gets an error. Received and
 * closed it could block who closes it: a socket with SO_LINGER, a file of FUSE;
 * discarded by the kernel, it does the same. Sockets that are accepted from a
 * listening one inherit it. Since Linux 6.16; before, nothing happens.
 */
void rights_refuse(int sock);

#endif
