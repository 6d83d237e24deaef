/* SPDX-License-Identifier: ISC */
/*
 * Closes channels whose other end is not trusted (dispose.h).
 */
#ifndef DISPOSE_CHANNEL_H
#define DISPOSE_CHANNEL_H

/* Closes our end. No close makes the caller wait: unread messages may also
 * bring descriptors. -1 is skipped. */
void dispose_channel(int fd);

#endif
