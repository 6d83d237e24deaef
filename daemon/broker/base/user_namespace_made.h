/* SPDX-License-Identifier: ISC */
/*
 * The user namespace (doc/design.md section 2) that belongs to the user of an
 * identity. A process of that user that has the descriptor may enter it, and
 * has capabilities there and nowhere else. This also works on hosts where
 * ordinary users may not make user namespaces.
 */
#ifndef USER_NAMESPACE_MADE_H
#define USER_NAMESPACE_MADE_H

#include <sys/types.h>

/* Receives what the program sends: the descriptor, close-on-exec and the
 * caller's, or -errno with the step that failed in *step. Waits for two seconds
 * at most. */
int userns_receive(int channel, const char **step);

/* Starts the program without root's execd, and returns as above. program_fd is
 * execd-runner. Only for root: for the doctor. */
int userns_open(int program_fd, uid_t uid, gid_t gid, const char **step);

#endif
