/*
 * A descriptor beside the bytes of a stream socket (unix(7), SCM_RIGHTS).
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <sys/types.h>
#include <sys/uio.h>

/* As writev(2); the first byte of it brings fd, which stays the caller's. */
ssize_t rights_send(int sock, struct iovec *iov, int n, int fd);

#endif
