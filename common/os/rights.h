/* SPDX-License-Identifier: ISC */
/*
 * Descriptors that travel beside the bytes of a stream socket (unix(7),
 * SCM_RIGHTS).
 */
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

struct msghdr;

/* Adds descriptors to a message that is to be sent. control has CMSG_SPACE(nfds
 * * sizeof(int)) bytes, which are zero, and is aligned like struct cmsghdr. */
void rights_attach(
    struct msghdr *m, void *control, const int *fds, size_t nfds);

/* Appends the descriptors of a received message to fds[*nfds]. Those beyond
 * `most` are closed. */
void rights_take(struct msghdr *m, int *fds, size_t *nfds, size_t most);

/* Like writev(2), but sends fd along with the first byte. fd stays the
 * caller's. */
ssize_t rights_send(int sock, struct iovec *iov, int n, int fd);

/*
 * From now on, sending a descriptor to this AF_UNIX socket fails. A received
 * descriptor can block its receiver when it is closed, for example a socket
 * with SO_LINGER or a file of FUSE. This also happens when the kernel discards
 * it. Sockets accepted from a listening socket inherit the setting. Needs Linux
 * 6.16; older kernels ignore it.
 */
void rights_refuse(int sock);
