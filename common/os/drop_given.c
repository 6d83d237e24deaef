/* SPDX-License-Identifier: ISC */
/*
 * The drop of a program that root has executed for another user.
 */
#include "base.h"
#include "drop.h"

#define CAP_LAST 63

/* Parses "UID:GID". Both are decimal, and neither may be -1. */
static bool
parse_user(const char *text, uid_t *uid, gid_t *gid)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return false;
	n = strtoul(text, &end, 10);
	*uid = (uid_t)n;
	if (n >= UINT32_MAX || *end != ':' || end[1] < '0' || end[1] > '9')
		return false;
	n = strtoul(end + 1, &end, 10);
	*gid = (gid_t)n;
	return n < UINT32_MAX && *end == '\0';
}

void
drop_parse(const char *text, uid_t *uid, gid_t *gid)
{
	if (!parse_user(text, uid, gid))
		log_fatal("not a user: %s", text);
}

void
drop_to_given(const char *text)
{
	int n = getgroups(0, NULL);
	gid_t *groups, gid;
	uid_t uid;

	drop_parse(text, &uid, &gid);
	if (n < 0)
		log_fatal_errno(-errno, "getgroups");
	groups = xcalloc((size_t)n + 1, sizeof(*groups));
	n = getgroups(n, groups);
	if (n < 0)
		log_fatal_errno(-errno, "getgroups");
	drop_to_user(uid, gid, groups, (size_t)n, false);
	free(groups);
}

void
drop_bounding_set(void)
{
	for (int cap = 0; cap <= CAP_LAST; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1 &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			log_fatal_errno(-errno, "dropping capability %d", cap);
}
