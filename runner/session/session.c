/* SPDX-License-Identifier: ISC */
/*
 * The session: its connection and its end. Its processes are in
 * session_process.c, what clients are told of them in session_tell.c.
 */
#include "session.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "environment.h"
#include "intake.h"
#include "log.h"
#include "loop.h"
#include "reserve.h"
#include "waiter.h"

static void kill_cb(evutil_socket_t fd, short what, void *arg);
static void rate_cb(evutil_socket_t fd, short what, void *arg);

/*
 * Notes placeholders in the session's list before they are made. If the runner
 * is killed in between, the cleanup still knows them.
 */
static const struct siphash_key *
note_placeholders(void *owner, const struct placeholder *placeholders, size_t n)
{
	struct session *s = owner;
	int err = s->placeholders.fd >= 0
		      ? placeholder_list_add(&s->placeholders, placeholders, n)
		      : -ENOENT;

	if (err == 0)
		return &s->placeholders.key;
	log_warn(err, "sandbox: placeholders that are on no list stay after a "
		      "hard stop");
	return NULL;
}

static bool
give_up_helper(void *owner, const struct sandbox *n)
{
	struct session *s = owner;

	return s->server->give_up(s, n);
}

/*
 * Builds the variables that tell a file helper where the user's configuration
 * is. A file helper has no other environment.
 */
static void
name_homes(struct session *s)
{
	const char *codex = environment_get(s->env, "CODEX_HOME");

	s->homes[0] = xasprintf("HOME=%s", s->config.home);
	if (codex != NULL)
		s->homes[1] = xasprintf("CODEX_HOME=%s", codex);
}

void
session_init(struct session *s, const struct session_server *server,
    struct event_base *base, const struct control_session_config *config,
    char **env, const struct session_fds *fds, const struct cgroup *cgroup)
{
	/*
	 * Fields are set one by one: memory that stays zero costs an idle
	 * session nothing.
	 */
	s->server = server;
	s->base = base;
	s->config = *config;
	s->env = env;
	name_homes(s);
	s->userns = fds->userns;
	s->http_program = fds->http_program;
	s->groups.session = *cgroup;
	s->client.channel.in_fd = s->client.channel.out_fd = -1;
	s->client.session = s;
	TAILQ_INIT(&s->watchers);
	TAILQ_INIT(&s->started);
	TAILQ_INIT(&s->closed);
	TAILQ_INIT(&s->helpers);
	placeholder_list_init(&s->placeholders, fds->placeholders);
	s->null_fd = -1;
	event_assign(
	    &s->forget_event, base, -1, 0, session_process_forget_cb, s);
	event_assign(&s->kill_event, base, -1, 0, kill_cb, s);
	event_assign(&s->rate_event, base, -1, 0, rate_cb, s);
	rate_init(&s->output_rate, config->output_rate, now_ms());
	server->begin(s);
}

void
session_limit(struct session *s, const struct sandbox_limits *limits)
{
	const struct cgroup cgroup = s->groups.session;
	const struct cgroup_limits group = { .pids = limits->pids,
		.memory_bytes = limits->memory_bytes,
		.cpu_percent = limits->cpu_percent,
		.end_together = true };
	struct sandbox_host host = {
		.base = s->base,
		.userns = s->userns,
		.homes = s->homes,
		.parent_death_signal = !s->config.pid_namespace,
		.home = s->config.home,
		.tmpdir = environment_get(s->env, "TMPDIR"),
		.give_up = give_up_helper,
		.note = note_placeholders,
		.owner = s,
	};

	cgroup_pool_init(&s->groups, &cgroup, &group);
	host.controllers = s->groups.controllers;
	sandboxes_init(&s->sandbox, &host, limits);
	s->sandbox.defers = true;
	s->groups.counted = s->record != NULL;
}

int
session_settle(struct session *s)
{
	if (s->null_fd >= 0)
		return 0;
	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->null_fd < 0)
		return -errno;
	reserve_begin();
	return 0;
}

/* --- the connection ----------------------------------------------------- */

static void
resume_visit(struct table_node *node, void *arg)
{
	process_resume(
	    &TABLE_OBJECT(node, struct session_process, node)->process);
}

static void
rate_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	table_each(&s->processes, resume_visit, NULL);
}

static void
orphan_visit(struct table_node *node, void *arg)
{
	struct session_process *p =
	    TABLE_OBJECT(node, struct session_process, node);

	if (!p->v0 || p->orphaned)
		return;
	p->orphaned = true;
	process_terminate(&p->process);
}

static void
drop_waiters_visit(struct table_node *node, void *arg)
{
	waiter_drop_all(TABLE_OBJECT(node, struct session_process, node), arg);
}

static void
answer_waiters_visit(struct table_node *node, void *arg)
{
	waiter_answer_all(
	    TABLE_OBJECT(node, struct session_process, node), arg);
}

static void
refuse_writes_visit(struct table_node *node, void *arg)
{
	input_refuse_waiting(
	    &TABLE_OBJECT(node, struct session_process, node)->process.input);
}

void
session_answer_waiters(struct client *c)
{
	table_each(&c->session->processes, answer_waiters_visit, c);
}

void
session_drop_waiters(struct client *c)
{
	table_each(&c->session->processes, drop_waiters_visit, c);
}

void
session_detach(struct session *s, enum channel_end end)
{
	if (!channel_is_open(&s->client.channel))
		return;
	/*
	 * The report goes first, then the end of file. The front-end then asks
	 * the broker for the reason, and the broker must know it by then.
	 */
	s->report_detached(s, end);
	channel_close(&s->client.channel);
	s->server->detached(s);
	table_each(&s->processes, orphan_visit, NULL);
	session_drop_waiters(&s->client);
	table_each(&s->processes, resume_visit, NULL);
}

void
session_finish_if_answered(struct session *s)
{
	if (!channel_is_open(&s->client.channel) ||
	    !channel_drained(&s->client.channel))
		return;
	if (s->client.violated)
		session_detach(s, CHANNEL_END_PROTOCOL);
	else if (s->client.input_ended && s->client.waiting == 0)
		session_detach(s, CHANNEL_END_DETACHED);
}

void
client_violation(struct client *c)
{
	c->violated = true;
	channel_stop_reading(&c->channel);
}

static void
on_message(struct channel *ch, char *text, size_t len)
{
	struct session *s = ch->owner;

	s->server->message(&s->client, text, len);
}

/* Content for a file is not held in memory but written to a spool. */
static struct intake *
on_long_message(struct channel *ch, const char *text, size_t len)
{
	struct session *s = ch->owner;

	return s->spools < SPOOLS_MAX
		   ? intake_begin(text, len, ch->max_message, &s->spools)
		   : NULL;
}

static void
on_drained(struct channel *ch)
{
	struct session *s = ch->owner;

	table_each(&s->processes, resume_visit, NULL);
	s->server->drained(s);
}

/*
 * The client sends no more. Waiting requests are answered now with what there
 * is. Over stdio somebody still reads the answers. A socket that has ended has
 * no reader.
 */
static void
on_ended(struct channel *ch)
{
	struct session *s = ch->owner;

	s->client.input_ended = true;
	if (!s->client.stdio)
		s->server->hung_up(s);
	session_answer_waiters(&s->client);
	table_each(&s->processes, refuse_writes_visit, NULL);
}

static void
on_broken(struct channel *ch, int err)
{
	if (err == -EBADMSG || err == -EMSGSIZE)
		log_error(err, "session channel: impossible frame");
	else if (err == -EMFILE)
		log_error(err, "session channel: the client's connection");
	session_detach(ch->owner, CHANNEL_END_DETACHED);
}

static const struct channel_events channel_events = {
	.message = on_message,
	.long_message = on_long_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

void
session_attach(struct session *s, int fd, const struct control_attach *attach)
{
	session_detach(s, CHANNEL_END_REPLACED);
	s->generation = attach->generation;
	snprintf(s->client.peer, sizeof(s->client.peer), "%s", attach->peer);
	s->client.stdio = strcmp(attach->peer, "stdio") == 0;
	s->client.state = SESSION_NEW;
	s->client.input_ended = s->client.violated = false;
	s->client.waiting = 0;
	channel_open(&s->client.channel, s->base, fd, fd,
	    (uint32_t)s->config.max_message_bytes, &channel_events, s);
	s->client.channel.hand_over = &s->config;
	channel_look(&s->client.channel);
}

/* --- the end ------------------------------------------------------------ */

static void
terminate_visit(struct table_node *node, void *arg)
{
	process_ask_to_end(
	    &TABLE_OBJECT(node, struct session_process, node)->process);
}

static void
kill_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct timeval again = { 0, 20000 };

	/* Repeated, because processes that die leave their children to us. */
	reaper_signal_all(SIGKILL);
	loop_add(&s->kill_event, &again);
}

void
session_terminate(struct session *s)
{
	struct timeval tv = timeval_of_ms(s->config.kill_grace_ms);

	if (s->terminating)
		return;
	s->terminating = true;
	table_each(&s->processes, terminate_visit, NULL);
	reaper_signal_all(SIGTERM);
	loop_add(&s->kill_event, &tv);
}
