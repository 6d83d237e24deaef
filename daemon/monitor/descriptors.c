/*
 * The monitor's limit of descriptors.
 */
#include "descriptors.h"

#include <errno.h>
#include <sys/resource.h>

#include "log.h"

/* Listeners and what belongs to them, the loop, the front-end, the keys, and
 * the pairs that are on their way. */
#define OWN_DESCRIPTORS 96

/* Its control channel, and the list of what it left on the disk. */
#define SESSION_DESCRIPTORS 2

static struct rlimit started_with;
static rlim_t now;

void
descriptors_raise(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &started_with) < 0)
		log_fatal_errno(-errno, "limit NOFILE");
	r = started_with;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r) < 0)
		r = started_with; /* as it is */
	now = r.rlim_cur;
}

void
descriptors_restore(void)
{
	if (setrlimit(RLIMIT_NOFILE, &started_with) < 0)
		log_fatal_errno(-errno, "limit NOFILE");
}

uint32_t
descriptors_sessions(void)
{
	if (now <= OWN_DESCRIPTORS)
		return 0;
	if (now == RLIM_INFINITY)
		return UINT32_MAX;
	return (uint32_t)((now - OWN_DESCRIPTORS) / SESSION_DESCRIPTORS);
}
