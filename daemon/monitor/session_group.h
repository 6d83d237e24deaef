/*
 * A session whose control group is made with its first process.
 */
#ifndef SESSION_GROUP_H
#define SESSION_GROUP_H

#include <stddef.h>
#include <stdint.h>

struct session;

/* Its runner asks, before that process, and is answered. 0, or -EBADMSG. */
int session_group_report(struct session *s, const uint8_t *packet, size_t len);

#endif
