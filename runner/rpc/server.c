/* SPDX-License-Identifier: ISC */
/* Serves a session. */
#include "server.h"

#include <errno.h>

#include "file_router.h"
#include "helper.h"
#include "methods.h"
#include "pattern_scan.h"
#include "sandboxes.h"
#include "slow_start.h"
#include "start_queue.h"
#include "watch.h"
#include "watches.h"

static struct start_queue starting;
static struct pattern_scan scan;
static struct file_router files;

/* --- patterns ----------------------------------------------------------- */

static int
wants(struct session *s, struct rpc_message *m, union method_params *p,
    struct sandbox_request *wanted, char ***envp)
{
	const struct rpc_method *method = rpc_method_find(m->method);
	char error[ARGS_ERROR_MAX];

	if (method == NULL || method->params(m, p, error) < 0)
		return -EBADMSG;
	if (method->helper == HELPER_FILES && method->method == NULL)
		*wanted = file_router_wants(method, &p->fs);
	else
		*wanted = method_process_wants(s, &p->process_start, envp);
	return 0;
}

static void
answered(
    struct session *s, enum scan_for who, const struct resolve_matches *found)
{
	if (who == SCAN_FOR_START)
		start_queue_resume(s, found);
	else if (who == SCAN_FOR_FILES)
		file_router_scanned(s, found);
}

static void
next(struct session *s, enum scan_for after)
{
	if (after == SCAN_FOR_START)
		file_router_scanned(s, NULL);
	else if (after == SCAN_FOR_FILES)
		start_queue_resume(s, NULL);
}

static const struct pattern_scan_user pattern_scan_user = {
	.wants = wants,
	.answered = answered,
	.next = next,
};

/* --- the session -------------------------------------------------------- */

static void
begin(struct session *s)
{
	s->files = &files;
	s->starting = &starting;
	s->scan = &scan;
	file_router_init(s->files);
	start_queue_init(s->starting);
	pattern_scan_init(s, &pattern_scan_user);
}

static void
drained(struct session *s)
{
	helper_resume_all(s);
	watches_resume(s);
}

/* File handles, HTTP exchanges and watched directories belong to the
 * connection. */
static void
detached(struct session *s)
{
	helper_stop_all(s);
	start_queue_clear(s);
	slow_start_clear(s);
	pattern_scan_cancel(s);
	watch_stop(s);
	watches_stop(s);
}

const struct session_server server = {
	.begin = begin,
	.message = methods_dispatch,
	.drained = drained,
	/* HTTP exchanges could last as long as their servers like. */
	.hung_up = helper_stop_http,
	.detached = detached,
	.give_up = helper_give_up,
};
