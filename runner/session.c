/*
 * The session: its connection, its processes, its end.
 */
#include "session.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit.h"
#include "environment.h"
#include "helper.h"
#include "log.h"
#include "methods.h"
#include "waiter.h"
#include "watch.h"

static void forget_cb(evutil_socket_t fd, short what, void *arg);
static void kill_cb(evutil_socket_t fd, short what, void *arg);

/* Of one command and all it starts (SANDBOX.md part E). */
#define COMMAND_PIDS_MAX   512
#define COMMAND_MEMORY_MAX (1ull << 30)

static bool
give_up_helper(void *owner, const struct nest *n)
{
	return helper_give_up(owner, n);
}

void
session_init(struct session *s, struct event_base *base,
    const struct control_session_config *config, char **env, int door,
    const struct cgroup *cgroup)
{
	/* The same limits by other means, where there are no groups. */
	const bool counted = cgroup_is_open(cgroup);
	const struct nest_options options = {
		.parent_death_signal = !config->pid_namespace,
		.processes = counted ? 0 : COMMAND_PIDS_MAX,
		.data_bytes = counted ? 0 : COMMAND_MEMORY_MAX,
	};

	*s = (struct session){ .base = base,
		.config = *config,
		.env = env,
		.channel = { .in_fd = -1, .out_fd = -1 } };
	TAILQ_INIT(&s->closed);
	TAILQ_INIT(&s->helpers);
	file_router_init(&s->files);
	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->null_fd < 0)
		log_fatal("/dev/null cannot be opened");
	sandbox_init(&s->sandbox, door, &options, s->config.home,
	    environment_get(env, "TMPDIR"), give_up_helper, s);
	group_pool_init(
	    &s->groups, cgroup, COMMAND_PIDS_MAX, COMMAND_MEMORY_MAX);
	event_assign(&s->forget_event, base, -1, 0, forget_cb, s);
	event_assign(&s->kill_event, base, -1, 0, kill_cb, s);
}

/* --- processes -------------------------------------------------------- */

static bool
match_process(const struct table_node *node, const void *key)
{
	const struct session_process *p =
	    TABLE_OBJECT(node, const struct session_process, node);

	return slice_equal(
	    *(const struct slice *)key, (struct slice){ p->id, p->id_len });
}

struct session_process *
session_find(struct session *s, struct slice id)
{
	struct table_node *node = table_find(
	    &s->processes, siphash_bytes(id.ptr, id.len), match_process, &id);

	return node ? TABLE_OBJECT(node, struct session_process, node) : NULL;
}

struct session_process *
session_process_new(struct session *s, struct slice id)
{
	struct session_process *p = xcalloc(1, sizeof(*p) + id.len + 1);

	p->session = s;
	TAILQ_INIT(&p->waiters);
	memcpy(p->id, id.ptr, id.len);
	p->id_len = id.len;
	return p;
}

void
session_add(struct session *s, struct session_process *p)
{
	table_insert(&s->processes, &p->node, siphash_bytes(p->id, p->id_len));
}

void
session_process_free(struct session_process *p)
{
	process_clear(&p->process);
	free(p);
}

static void
plan_forgetting(struct session *s)
{
	struct session_process *first = TAILQ_FIRST(&s->closed);
	int64_t ms;
	struct timeval tv;

	if (first == NULL)
		return;
	ms = first->forget_ms - now_ms();
	if (ms < 0)
		ms = 0;
	tv = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
	event_add(&s->forget_event, &tv);
}

static void
forget_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct session_process *p;

	while (
	    (p = TAILQ_FIRST(&s->closed)) != NULL && p->forget_ms <= now_ms()) {
		TAILQ_REMOVE(&s->closed, p, closed_link);
		table_remove(&s->processes, &p->node);
		session_process_free(p);
	}
	plan_forgetting(s);
}

/* --- what the attached client is told of them --------------------------- */

static struct json_writer
begin_event(struct session_process *p, const char *method, uint64_t seq)
{
	struct json_writer w = channel_begin(&p->session->channel);

	rpc_begin_notification(&w, method);
	json_begin(&w, '{');
	json_key(&w, "processId");
	json_string(&w, p->id, p->id_len);
	json_key(&w, "seq");
	json_u64(&w, seq);
	return w;
}

static void
end_event(struct session_process *p, struct json_writer *w)
{
	json_end(w, '}');
	rpc_end_notification(w);
	channel_send(&p->session->channel);
}

/* While nobody is attached nothing is told; it can be read later. */
static bool
is_told(const struct session_process *p)
{
	const struct session *s = p->session;

	return channel_is_open(&s->channel) && s->state != SESSION_NEW &&
	       !s->violated;
}

static void
on_output(struct process *process, uint64_t seq, enum stream stream,
    const void *data, size_t len)
{
	struct session_process *p = process->owner;

	if (is_told(p)) {
		struct json_writer w = begin_event(p, "process/output", seq);

		json_key(&w, "stream");
		json_cstring(&w, stream_name(stream));
		json_key(&w, "chunk");
		json_base64(&w, data, len);
		end_event(p, &w);
	}
	waiter_wake(p);
}

static void
on_exited(struct process *process, uint64_t seq)
{
	struct session_process *p = process->owner;

	audit_exited(p->session, p);
	if (is_told(p)) {
		struct json_writer w = begin_event(p, "process/exited", seq);

		json_key(&w, "exitCode");
		json_i64(&w, process->state.exit_code);
		json_key(&w, "sandboxDenied");
		json_bool(&w, process->state.sandbox_denied);
		end_event(p, &w);
	}
	waiter_wake(p);
}

static void
on_closed(struct process *process, uint64_t seq)
{
	struct session_process *p = process->owner;
	struct session *s = p->session;

	if (is_told(p)) {
		struct json_writer w = begin_event(p, "process/closed", seq);

		end_event(p, &w);
	}
	waiter_wake(p);
	p->forget_ms = now_ms() + s->config.closed_ttl_ms;
	TAILQ_INSERT_TAIL(&s->closed, p, closed_link);
	if (TAILQ_FIRST(&s->closed) == p)
		plan_forgetting(s);
}

static bool
on_congested(struct process *process)
{
	struct session_process *p = process->owner;

	return is_told(p) && channel_congested(&p->session->channel);
}

const struct process_observer session_observer = {
	.output = on_output,
	.exited = on_exited,
	.closed = on_closed,
	.congested = on_congested,
};

/* --- the connection ----------------------------------------------------- */

static void
resume_visit(struct table_node *node, void *arg)
{
	process_resume(
	    &TABLE_OBJECT(node, struct session_process, node)->process);
}

static void
drop_waiters_visit(struct table_node *node, void *arg)
{
	waiter_drop_all(TABLE_OBJECT(node, struct session_process, node));
}

static void
answer_waiters_visit(struct table_node *node, void *arg)
{
	struct session_process *p =
	    TABLE_OBJECT(node, struct session_process, node);

	waiter_answer_all(p);
	input_refuse_waiting(&p->process.input);
}

void
session_detach(struct session *s, enum channel_end end)
{
	if (!channel_is_open(&s->channel))
		return;
	/* First the word, then the end of file: the front-end asks the monitor
	 * why, and the monitor must know by then. */
	s->report_detached(s, end);
	channel_close(&s->channel);
	/* File handles and HTTP exchanges belong to the connection. */
	helper_stop_all(s);
	watch_stop(s);
	table_each(&s->processes, drop_waiters_visit, NULL);
	table_each(&s->processes, resume_visit, NULL);
}

void
session_finish_if_answered(struct session *s)
{
	if (!channel_is_open(&s->channel) || !channel_drained(&s->channel))
		return;
	if (s->violated)
		session_detach(s, CHANNEL_END_PROTOCOL);
	else if (s->input_ended && s->waiting == 0)
		session_detach(s, CHANNEL_END_DETACHED);
}

void
session_violation(struct session *s)
{
	s->violated = true;
	channel_stop_reading(&s->channel);
}

static void
on_message(struct channel *ch, char *text, size_t len)
{
	methods_dispatch(ch->owner, text, len);
}

static void
on_drained(struct channel *ch)
{
	struct session *s = ch->owner;

	table_each(&s->processes, resume_visit, NULL);
	helper_resume_all(s);
}

/* The client said its last word; what waits for time to pass is answered
 * now with what there is. */
static void
on_ended(struct channel *ch)
{
	struct session *s = ch->owner;

	s->input_ended = true;
	table_each(&s->processes, answer_waiters_visit, NULL);
}

static void
on_broken(struct channel *ch, int err)
{
	if (err == -EBADMSG || err == -EMSGSIZE)
		log_error(err, "session channel: impossible frame");
	session_detach(ch->owner, CHANNEL_END_DETACHED);
}

static const struct channel_events channel_events = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

void
session_attach(struct session *s, int fd, const struct control_attach *attach)
{
	session_detach(s, CHANNEL_END_REPLACED);
	s->generation = attach->generation;
	snprintf(s->peer, sizeof(s->peer), "%s", attach->peer);
	s->state = SESSION_NEW;
	s->input_ended = s->violated = false;
	s->waiting = 0;
	channel_open(&s->channel, s->base, fd, fd,
	    (uint32_t)s->config.max_message_bytes, &channel_events, s);
}

/* --- the end ------------------------------------------------------------ */

static void
terminate_visit(struct table_node *node, void *arg)
{
	struct process *p =
	    &TABLE_OBJECT(node, struct session_process, node)->process;

	/* A stopped process hears TERM only when it goes on; a shell on a
	 * terminal minds a hangup, not TERM. */
	if (p->tty)
		process_signal(p, SIGHUP);
	process_signal(p, SIGTERM);
	process_signal(p, SIGCONT);
}

static void
kill_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct timeval again = { 0, 20000 };

	/* In rounds: those who die hand their children over. */
	reaper_signal_all(SIGKILL);
	event_add(&s->kill_event, &again);
}

void
session_terminate(struct session *s)
{
	struct timeval tv = { s->config.kill_grace_ms / 1000,
		s->config.kill_grace_ms % 1000 * 1000 };

	if (s->terminating)
		return;
	s->terminating = true;
	table_each(&s->processes, terminate_visit, NULL);
	reaper_signal_all(SIGTERM);
	event_add(&s->kill_event, &tv);
}
