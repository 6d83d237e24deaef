/* SPDX-License-Identifier: ISC */
#include "session.h"

#include <event2/event.h>

#include "channel_direct.h"
#include "descriptors.h"
#include "environment.h"
#include "limit_told.h"
#include "loop.h"
#include "own_ports.h"
#include "path_map.h"
#include "redirect.h"
#include "report.h"
#include "siphash.h"

/*
 * The number of reserved descriptors. A command of the broker brings a
 * descriptor. The kernel drops the descriptor if the process has no number
 * left. The reserve has room for the attached client,
 * the connection that may follow it, and the watchers (16, session_registry.h
 * of the broker).
 */
#define FOR_COMMANDS 19

static void forget_cb(evutil_socket_t fd, short what, void *arg);
static void kill_cb(evutil_socket_t fd, short what, void *arg);
static void plan_forgetting(struct session *s);
static void rate_cb(evutil_socket_t fd, short what, void *arg);

static bool
give_up_helper(void *owner, const struct sandbox *n)
{
	struct session *s = owner;

	return s->server->give_up(s, n);
}

/* Kills the commands that can see a file which the policy of their sandbox
 * protects: their view cannot be made whole while they run. */
static void
end_uncovered(void *owner, const struct sandbox *n, const char *path)
{
	struct session *s = owner;
	struct session_process *sp;

	log_warn(0,
	    "sandbox: %s was replaced: killing the commands that see it", path);
	give_up_helper(s, n);
	TAILQ_FOREACH (sp, &s->started, link) {
		if (sp->process.sandbox != n)
			continue;
		if (!process_terminate(&sp->process))
			process_kill_tree(&sp->process);
		else if (sp->uncovered == NULL)
			sp->uncovered = xstrdup(path);
	}
}

/*
 * Builds the variables that tell a file helper where the user's configuration
 * is, and by which names the client calls paths. A file helper has no other
 * environment.
 */
static void
name_homes(struct session *s)
{
	const char *codex = environment_get(s->env, "CODEX_HOME");
	size_t n = 0;

	s->homes[n++] = xasprintf("HOME=%s", s->config.home);
	if (codex != NULL)
		s->homes[n++] = xasprintf("CODEX_HOME=%s", codex);
	if (s->config.path_map[0] != '\0')
		s->homes[n++] =
		    xasprintf(CONTROL_PATH_MAP_ENV "=%s", s->config.path_map);
}

void
session_init(struct session *s, const struct session_server *server,
    struct event_base *base, const struct control_session_config *config,
    char **env, const struct session_fds *fds, const struct cgroup *cgroup)
{
	char why[PATH_MAP_WHY_MAX];

	/*
	 * Fields are set one by one: memory that stays zero costs an idle
	 * session nothing.
	 */
	s->server = server;
	s->base = base;
	s->config = *config;
	s->env = env;
	name_homes(s);
	if (path_map_use(config->path_map, why) < 0)
		log_fatal("impossible path map from the broker: %s", why);
	s->userns = fds->userns;
	s->http_program = fds->http_program;
	s->files_program = fds->files_program;
	s->netproxy_program = fds->netproxy_program;
	s->redirect_try = -1;
	if (s->netproxy_program < 0)
		s->config.redirects = CAN_NOT;
	else if (s->config.redirects == CAN_UNKNOWN)
		s->redirect_try = redirect_try(s->userns);
	s->groups.session = *cgroup;
	s->client.channel.in_fd = s->client.channel.out_fd = -1;
	s->client.session = s;
	TAILQ_INIT(&s->watchers);
	TAILQ_INIT(&s->started);
	TAILQ_INIT(&s->closed);
	TAILQ_INIT(&s->helpers);
	s->null_fd = -1;
	event_assign(&s->forget_event, base, -1, 0, forget_cb, s);
	event_assign(&s->kill_event, base, -1, 0, kill_cb, s);
	event_assign(&s->rate_event, base, -1, 0, rate_cb, s);
	rate_init(&s->output_rate, config->output_rate, now_ms());
	server->begin(s);
}

bool
session_redirects(struct session *s)
{
	struct control_redirects r;
	int possible;

	if (s->redirect_try < 0)
		return s->config.redirects == CAN;
	possible =
	    redirect_is_possible(steal_fd(&s->redirect_try), REDIRECT_TRY_MS);
	s->config.redirects = possible > 0 ? CAN : CAN_NOT;
	r.possible = possible > 0;
	/* A host that is busy now may answer the next session. */
	if (possible < 0)
		log_warn(possible, "whether transparent TCP is possible here");
	else
		s->report(RUNNER_EVENT_REDIRECTS, &r);
	return r.possible;
}

_Static_assert(OWN_PORTS_MAX == SANDBOX_OWN_PORTS_MAX,
    "the ports of the limits can be guarded");

/* Nothing may run on that would not know them. */
static void
share_own_ports(struct session *s, const struct sandbox_limits *limits)
{
	int err = 0;

	if (s->limits_number == 0)
		s->own_ports = err = own_ports_share();
	if (err >= 0)
		err = own_ports_set(s->own_ports, limits->own_ports);
	if (err < 0)
		log_fatal_errno(err, "the table of execd's own ports");
}

void
session_limit(struct session *s, const struct sandbox_limits *limits)
{
	const struct cgroup cgroup = s->groups.session;
	struct network_limits *network = &s->network_limits;
	const struct sandbox_group most = sandbox_limits_smallest(limits);
	const struct cgroup_limits group = { .pids = most.pids,
		.memory_bytes = most.memory_bytes,
		.may_swap = limits->memory_bytes == 0,
		.cpu_percent = limits->cpu_percent,
		.cpu_weight = limits->cpu_weight,
		.io_weight = limits->io_weight,
		.end_together = true };
	struct sandbox_host host = {
		.base = s->base,
		.userns = s->userns,
		.program = s->files_program,
		.homes = s->homes,
		.parent_death_signal = !s->config.pid_namespace,
		.cpu_s = s->config.command_cpu_s,
		.home = s->config.home,
		.tmpdir = environment_get(s->env, "TMPDIR"),
		.give_up = give_up_helper,
		.on_replaced = end_uncovered,
		.owner = s,
	};

	share_own_ports(s, limits);
	host.own_ports = limits->guards_ports ? s->own_ports : -1;
	if (s->limits_number > 0)
		cgroup_pool_limit(&s->groups, &group);
	else
		cgroup_pool_init(&s->groups, &cgroup, &group);
	host.controllers = s->groups.controllers;
	if (s->limits_number > 0)
		sandboxes_limit(&s->sandbox, &host, limits);
	else
		sandboxes_init(&s->sandbox, &host, limits);
	s->sandbox.defers = true;
	s->limits_number++;
	free(network->allow);
	free(network->deny);
	*network = (struct network_limits){
		.connections = limits->network_connections,
		.bytes = limits->network_bytes,
		/* Without the network of the host nobody reaches more than
		 * public addresses, whatever a client lists. */
		.allow = xstrdup(
		    limits->network_host || limits->network_allow[0] != '\0'
			? limits->network_allow
			: "*:*"),
		.deny = xstrdup(limits->network_deny),
	};
}

int
session_settle(struct session *s)
{
	if (s->null_fd >= 0)
		return 0;
	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (s->null_fd < 0)
		return -errno;
	reserve_begin(FOR_COMMANDS + RESERVE_TO_KILL);
	return 0;
}

/* --- the connection ----------------------------------------------------- */

static void
resume_all(struct session *s)
{
	struct session_process *p;

	TABLE_FOREACH (p, &s->processes, node)
		process_resume(&p->process);
}

static void
rate_cb(evutil_socket_t fd, short what, void *arg)
{
	resume_all(arg);
}

static void
kill_orphans(struct session *s)
{
	struct session_process *p;

	TABLE_FOREACH (p, &s->processes, node) {
		if (!p->v0 || p->orphaned)
			continue;
		p->orphaned = true;
		process_kill_tree(&p->process);
	}
}

void
session_answer_waiters(struct client *c)
{
	struct session_process *p;

	TABLE_FOREACH (p, &c->session->processes, node)
		waiter_answer_all(p, c);
}

void
session_drop_waiters(struct client *c)
{
	struct session_process *p;

	TABLE_FOREACH (p, &c->session->processes, node)
		waiter_drop_all(p, c);
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
	s->detached_ms = now_ms();
	s->server->detached(s);
	kill_orphans(s);
	session_drop_waiters(&s->client);
	resume_all(s);
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

	resume_all(s);
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
	struct session_process *p;

	s->client.input_ended = true;
	if (!s->client.stdio)
		s->server->hung_up(s);
	session_answer_waiters(&s->client);
	TABLE_FOREACH (p, &s->processes, node)
		input_refuse_waiting(&p->process.input);
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

static void
report_alive(const struct session *s, uint32_t number)
{
	const struct control_runner_probe p = { .number = number };

	s->report(RUNNER_EVENT_PROBED, &p);
}

static void
on_alive(struct channel *ch, uint32_t number)
{
	report_alive(ch->owner, number);
}

void
session_probe(struct session *s, uint32_t number)
{
	struct channel *ch = &s->client.channel;

	/* The number 0 asks for the runner, any other for its client. */
	if (number == 0 || (channel_is_open(ch) && ch->direct == NULL))
		report_alive(s, number);
	else if (channel_is_open(ch))
		direct_probe(ch, number);
}

static const struct channel_events channel_events = {
	.message = on_message,
	.long_message = on_long_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
	.alive = on_alive,
};

/* The client whose session another connection takes. What it was sent and has
 * not read is lost, and this with it. */
static void
tell_taken_over(struct session *s, const char *by)
{
	struct json_writer w;

	if (!channel_is_open(&s->client.channel) ||
	    s->client.state == SESSION_NEW)
		return;
	w = channel_begin(&s->client.channel);
	rpc_begin_notification(&w, "session/takenOver");
	json_begin(&w, '{');
	json_key_cstring(&w, "by", by);
	json_end(&w, '}');
	rpc_end_notification(&w);
	channel_send(&s->client.channel);
	channel_flush(&s->client.channel);
}

void
session_attach(struct session *s, int fd, const struct control_attach *attach,
    bool proxied)
{
	tell_taken_over(s, attach->peer);
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
	s->client.channel.proxied = proxied;
	channel_look(&s->client.channel);
	keep_attached(s);
	plan_forgetting(s);
}

/* --- the end ------------------------------------------------------------ */

static void
kill_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	/* Repeated, because processes that die leave their children to us. */
	reaper_signal_all(SIGKILL);
	loop_add_ms(&s->kill_event, 20);
}

void
session_terminate(struct session *s)
{
	struct session_process *p;

	if (s->terminating)
		return;
	s->terminating = true;
	TABLE_FOREACH (p, &s->processes, node)
		process_ask_to_end(&p->process);
	reaper_signal_all(SIGTERM);
	loop_add_ms(&s->kill_event, s->config.kill_grace_ms);
}

/* --- its processes ------------------------------------------------------ */

/*
 * The processes of a session: found by id, and kept after they closed until
 * they are forgotten.
 */

/* bytes of a command line kept for process/list */
#define COMMAND_KEPT_BYTES 4096

/*
 * The retained output of all closed processes is limited to what this many
 * running ones may retain.
 */
#define CLOSED_OUTPUTS_MAX 256

struct process_key {
	struct slice id;
	bool v0;
};

static bool
match_process(const struct table_node *node, const void *arg)
{
	const struct process_key *key = arg;
	const struct session_process *p =
	    TABLE_OBJECT(node, const struct session_process, node);

	return p->v0 == key->v0 && !p->orphaned &&
	       slice_equal(key->id, (struct slice){ p->id, p->id_len });
}

static struct session_process *
find(struct session *s, struct process_key key)
{
	struct table_node *node = table_find(&s->processes,
	    siphash_bytes(key.id.ptr, key.id.len), match_process, &key);

	return node ? TABLE_OBJECT(node, struct session_process, node) : NULL;
}

struct session_process *
session_find(struct session *s, struct slice id)
{
	return find(s, (struct process_key){ id, false });
}

struct session_process *
session_find_v0(struct session *s, struct slice id)
{
	return find(s, (struct process_key){ id, true });
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
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	p->started_wall_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	p->started_mono_ms = now_ms();
	p->number = ++s->starts;
	table_insert(&s->processes, &p->node, siphash_bytes(p->id, p->id_len));
	TAILQ_INSERT_TAIL(&s->started, p, link);
	keep_look(s);
}

void
session_note_command(struct session_process *p, char *const *argv)
{
	struct buf text;

	buf_init(&text, COMMAND_KEPT_BYTES);
	for (; *argv != NULL && !p->command_cut; argv++) {
		size_t n = strlen(*argv) + 1;

		p->command_cut = n > COMMAND_KEPT_BYTES - text.len;
		if (!p->command_cut)
			buf_put(&text, *argv, n);
	}
	p->command = (char *)text.data;
	p->command_len = text.len;
}

static void
session_process_free(struct session_process *p)
{
	process_clear(&p->process);
	recorder_end(p);
	network_free(p->network);
	free(p->start_id);
	free(p->command);
	free(p->sandbox.cwd);
	free(p->limit);
	free(p->uncovered);
	free(p);
}

static void
plan_forgetting(struct session *s)
{
	struct session_process *first = TAILQ_FIRST(&s->closed);
	int64_t ms;

	if (first == NULL || keep_remembers(s))
		return;
	ms = first->forget_ms - now_ms();
	loop_add_ms(&s->forget_event, ms < 0 ? 0 : (uint64_t)ms);
}

/*
 * Callback of session.forget_event: forgets the closed processes whose time has
 * come.
 */
static void
forget_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct session_process *p;

	while (!keep_remembers(s) && (p = TAILQ_FIRST(&s->closed)) != NULL &&
	       p->forget_ms <= now_ms()) {
		s->output_kept -= p->output_kept;
		if (s->oldest_kept == p)
			s->oldest_kept = TAILQ_NEXT(p, closed_link);
		TAILQ_REMOVE(&s->closed, p, closed_link);
		TAILQ_REMOVE(&s->started, p, link);
		table_remove(&s->processes, &p->node);
		session_process_free(p);
	}
	plan_forgetting(s);
}

/*
 * If there is too much, the output of the oldest processes is dropped. How they
 * ended can still be asked.
 */
static void
keep_output(struct session_process *p)
{
	struct session *s = p->session;
	uint64_t most = s->config.retention_bytes * CLOSED_OUTPUTS_MAX;

	p->output_kept = process_state_memory(&p->process.state);
	s->output_kept += p->output_kept;
	if (s->oldest_kept == NULL)
		s->oldest_kept = p;
	while (s->output_kept > most && s->oldest_kept != p) {
		struct session_process *oldest = s->oldest_kept;

		process_state_drop(&oldest->process.state);
		s->output_kept -= oldest->output_kept;
		oldest->output_kept = 0;
		s->oldest_kept = TAILQ_NEXT(oldest, closed_link);
	}
}

/*
 * An orphaned process is forgotten at once, because no client can ask about it.
 */
void
session_note_closed(struct session_process *p)
{
	struct session *s = p->session;

	recorder_end(p);
	if (p->network != NULL)
		s->server->closed(p);
	p->forget_ms = p->orphaned ? 0 : now_ms() + s->config.closed_ttl_ms;
	if (p->orphaned) {
		TAILQ_INSERT_HEAD(&s->closed, p, closed_link);
	} else {
		TAILQ_INSERT_TAIL(&s->closed, p, closed_link);
		keep_output(p);
	}
	if (TAILQ_FIRST(&s->closed) == p)
		plan_forgetting(s);
	keep_look(s);
}

/* --- what is told ------------------------------------------------------- */

/*
 * What the attached client is told about the session's processes, and how fast.
 */

static const char *
event_method(const struct process_event *e)
{
	static const char *const names[] = { [EVENT_OUTPUT] = "process/output",
		[EVENT_EXITED] = "process/exited",
		[EVENT_CLOSED] = "process/closed",
		[EVENT_DECIDED] = "network/policyDecision" };

	return names[e->kind];
}

static void
write_output(struct json_writer *w, const struct process_event *e)
{
	json_key_cstring(w, "stream", stream_name(e->stream));
	json_key_base64(w, "chunk", e->data, e->len);
}

static void
write_exited(struct json_writer *w, const struct session_process *p)
{
	const struct process *process = &p->process;

	json_key_i64(w, "exitCode", process->state.exit_code);
	json_key_bool(w, "sandboxDenied", process->state.sandbox_denied);
	/* Members that only execd knows appear only when they apply. */
	if (process->timed_out)
		json_key_bool(w, "timedOut", true);
	limit_write(w, p);
	network_write_denied(w, p);
}

void
session_tell(
    struct client *c, struct session_process *p, const struct process_event *e)
{
	struct json_writer w = channel_begin(&c->channel);

	rpc_begin_notification(&w, event_method(e));
	json_begin(&w, '{');
	json_key_string(&w, "processId", p->id, p->id_len);
	if (e->kind != EVENT_DECIDED)
		json_key_u64(&w, "seq", e->seq);
	if (e->kind == EVENT_OUTPUT)
		write_output(&w, e);
	else if (e->kind == EVENT_EXITED)
		write_exited(&w, p);
	else if (e->kind == EVENT_DECIDED)
		network_write_decided(&w, e->decided);
	json_end(&w, '}');
	rpc_end_notification(&w);
	channel_send(&c->channel);
}

/*
 * While no client is attached, no events are sent; the output can be read
 * later.
 */
bool
session_is_told(const struct session_process *p)
{
	const struct session *s = p->session;

	return channel_is_open(&s->client.channel) &&
	       s->client.state != SESSION_NEW && !s->client.violated &&
	       !p->orphaned;
}

static void
tell_all(struct session_process *p, const struct process_event *e)
{
	if (session_is_told(p))
		session_tell(&p->session->client, p, e);
	watchers_tell(p, e);
	waiter_wake(p);
}

/* Output that waits is read; the client would get it twice. */
static void
on_output(struct process *process, uint64_t seq, enum stream stream,
    const void *data, size_t len)
{
	struct process_event e = { EVENT_OUTPUT, seq, stream, data, len };
	struct session_process *p = process->owner;

	session_note_output(p, data, len);
	if (process->state.wait_bytes == 0 && session_is_told(p))
		session_tell(&p->session->client, p, &e);
	watchers_tell(p, &e);
	waiter_wake(p);
}

static void
on_started(struct process *process, const struct spawn_fault *fault)
{
	struct session_process *p = process->owner;

	p->session->server->executed(p, fault);
}

static void
before_exited(struct process *process)
{
	limit_tell(process->owner);
}

static void
on_exited(struct process *process, uint64_t seq)
{
	struct process_event e = { .kind = EVENT_EXITED, .seq = seq };
	struct session_process *p = process->owner;

	if (p->network != NULL)
		p->session->server->exited(p);
	audit_exited(process->owner);
	tell_all(process->owner, &e);
}

static void
on_closed(struct process *process, uint64_t seq)
{
	struct process_event e = { .kind = EVENT_CLOSED, .seq = seq };

	tell_all(process->owner, &e);
	session_note_closed(process->owner);
}

void
session_note_output(struct session_process *p, const void *data, size_t len)
{
	rate_spend(&p->session->output_rate, len);
	recorder_output(p, data, len);
}

/* Pauses all reading until the rate permits more output. */
static bool
is_too_fast(struct session *s)
{
	if (s->output_rate.per_second == 0 ||
	    rate_permits(&s->output_rate, now_ms()))
		return false;
	if (!event_pending(&s->rate_event, EV_TIMEOUT, NULL))
		loop_add_ms(&s->rate_event, rate_wait_ms(&s->output_rate));
	return true;
}

/* Connections that only watch never pause a command. */
bool
session_congested(struct process *process)
{
	struct session_process *p = process->owner;

	if (is_too_fast(p->session))
		return true;
	return session_is_told(p) &&
	       channel_congested(&p->session->client.channel);
}

const struct process_observer session_observer = {
	.started = on_started,
	.output = on_output,
	.ended = before_exited,
	.exited = on_exited,
	.closed = on_closed,
	.congested = session_congested,
};
