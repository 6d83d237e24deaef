/*
 * A session's control group when its runner asks for it.
 */
#include "session_group.h"

#include <errno.h>

#include "log.h"
#include "monitor.h"
#include "quota.h"

static void
answer(struct session *s, int err, const struct cgroup *cgroup)
{
	struct control_group answer = { .error = (uint32_t)-err };
	int fds[CGROUP_HIERARCHIES];
	size_t nfds = cgroup_put(cgroup, &answer.cgroups, fds);

	session_order(s, RUNNER_ORDER_GROUP, &answer, fds, nfds);
}

/* Without one its runner refuses the request, and asks again for the next. */
int
session_group_report(struct session *s, const uint8_t *packet, size_t len)
{
	struct cgroup cgroup = CGROUP_NONE;
	char reason[256];
	int err;

	if (!s->group_later ||
	    control_get(packet, len, RUNNER_REPORT_GROUP, NULL) < 0)
		return -EBADMSG;
	err = quota_take_in(s->id, s->identity, s->pid, &cgroup, reason);
	if (err < 0)
		log_error(0, "session %.*s: %s", ID_LOG_CHARS, s->id, reason);
	s->group_later = err < 0;
	answer(s, err, &cgroup);
	cgroup_close(&cgroup);
	return 0;
}
