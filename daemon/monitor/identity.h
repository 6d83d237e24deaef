/*
 * Who a session's commands run as: everything the C library knows about the
 * user, looked up once, before the first client.
 */
#ifndef IDENTITY_H
#define IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct identity {
	char *name;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary groups, gid included */
	size_t ngroups;
	char *home;
	char *shell; /* login shell, absolute */
	char **env;  /* environment of the runner: what envPolicy inherits */
	int door;    /* door.h; -1: none */
	bool door_tried;
};

/* The user of that name, for a monitor that is root. 0, -ENOENT (no such
 * user), -EPERM (it is root) or -errno. */
int identity_from_name(struct identity *id, const char *name);

/* The user execd runs as, with execd's own environment. 0 or -errno. */
int identity_self(struct identity *id);

void identity_clear(struct identity *id);

#endif
