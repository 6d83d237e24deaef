/* SPDX-License-Identifier: ISC */
/*
 * Session mode: handles the broker's commands. Only the broker can say whose
 * session this is: CONFIGURE comes first, on a channel that no front-end ever
 * had. A command that is not in the table, or not permitted now, ends the
 * runner.
 */
#include "commands.h"

#include <event2/event.h>
#include <event2/util.h>

#include "audit.h"
#include "base.h"
#include "cgroup.h"
#include "descriptors.h"
#include "drop.h"
#include "heap.h"
#include "helper.h"
#include "loop.h"
#include "methods.h"
#include "process_tree.h"
#include "seqpacket.h"

/*
 * A broker that does not read for this long is stuck, and a new one would be
 * too.
 */
#define REPORT_WAIT_MS 30000

static int open_recording(struct slice process);
static void ask_keep(
    const struct control_keep_wanted *wanted, struct control_keep *answer);
static void ask_list(
    const struct control_list_wanted *wanted, struct control_list *answer);

/* How long the session's last processes have to die of SIGKILL. */
#define LAST_KILL_MS 3000

enum runner_state {
	RUNNER_FRESH = 1 << 0,
	RUNNER_CONFIGURED = 1 << 1,
	RUNNER_READY = 1 << 2,
	RUNNER_TERMINATING = 1 << 3,
};

static struct session session;
static enum runner_state state = RUNNER_FRESH;
static struct event_base *base;
static char **base_env;
static uint32_t recordings;	   /* how many were requested so far */
static struct control_token token; /* of the client; for the next broker */
static heap_aligned uint8_t packet_in[CONTROL_MESSAGE_MAX];

/* What a command says, and its descriptors. */
struct command {
	enum control_type type;
	size_t nfds;
	const int *fds;
	const union command_payload {
		struct control_session_config configure;
		struct control_audit audit;
		struct control_audit_state audit_state;
		struct sandbox_limits sandbox;
		struct control_attach attach;
		struct control_runner_probe probe;
		struct control_watch watch;
		struct control_token token;
		struct control_keep keep;
		struct control_list list;
		/* Whole pages, which are given back; on the stack they would
		 * stay for ever. */
		uint8_t pages[8 * HEAP_PAGE_BYTES];
	} * in;
};
static heap_aligned union command_payload payload_in;
_Static_assert(sizeof(payload_in) == sizeof(payload_in.pages),
    "nothing else lies in the pages of a command");

/* Ends the session and the program. */
static void __attribute__((noreturn)) end_runner(void)
{
	reaper_kill_all(LAST_KILL_MS);
	/*
	 * Placeholders on the disk are removed when nobody uses them any more.
	 */
	if (!(state & (RUNNER_FRESH | RUNNER_CONFIGURED)))
		sandbox_pool_clear(&session.sandbox.pool);
	exit(0);
}

/* Ends the runner and logs which command was impossible. */
static void __attribute__((noreturn)) impossible(enum control_type type)
{
	log_fatal("impossible command from the broker: %s", control_name(type));
}

/* Called when the last child was reaped. */
static void
on_idle(void)
{
	if (state == RUNNER_TERMINATING)
		end_runner();
}

/*
 * The broker never waits for a runner, so this wait for the broker is bounded.
 */
static void
report(enum control_type type, const void *payload)
{
	struct pollfd room = { .fd = CONTROL_FD, .events = POLLOUT };
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	while ((err = seqpacket_send(CONTROL_FD, b.data, b.len, NULL, 0)) ==
		   -EAGAIN &&
	       poll(&room, 1, REPORT_WAIT_MS) > 0)
		continue;
	/* If the broker is gone, the channel reports it. */
	if (err < 0 && err != -EPIPE)
		log_fatal_errno(err, "the broker accepts no report");
	buf_clear(&b);
}

/* Tells whether a client that comes back would find nothing. */
static bool
is_empty(const struct session *s)
{
	return s->starts == 0 && s->v0_starts == 0 && s->files->nhandles == 0 &&
	       s->watch == NULL && s->watches == NULL;
}

static void
report_detached(struct session *s, enum channel_end why)
{
	struct control_detached d = {
		.generation = s->generation, .end = why, .empty = is_empty(s)
	};

	report(RUNNER_EVENT_DETACHED, &d);
}

static void
report_unwatched(uint32_t number, enum channel_end why)
{
	struct control_unwatched u = { .number = number, .end = why };

	report(RUNNER_EVENT_UNWATCHED, &u);
}

/*
 * The descriptors come in this order: execd-http, execd-files, those the flags
 * name, control groups.
 */
static int
take_fds(const struct control_session_config *c, const int *fds, size_t nfds,
    struct session_fds *own, struct cgroup *cgroup)
{
	size_t n = 0;

	if (nfds < 2u + c->netproxy + c->userns)
		return -EBADMSG;
	own->http_program = fds[n++];
	own->files_program = fds[n++];
	own->netproxy_program = c->netproxy ? fds[n++] : -1;
	own->userns = c->userns ? fds[n++] : -1;
	return cgroup_get(cgroup, c->cgroups, fds + n, nfds - n);
}

static int
take_configure(const struct command *c)
{
	const struct control_session_config *config = &c->in->configure;
	struct session_fds own;
	struct cgroup cgroup;
	char label[16];
	int err;

	if (take_fds(config, c->fds, c->nfds, &own, &cgroup) < 0)
		return -EBADMSG;
	snprintf(label, sizeof(label), "session %.7s", config->session_id);
	log_set_label(label);
	err = reaper_init(base, config->pid_namespace, on_idle);
	if (err < 0)
		log_fatal_errno(err, "taking over the session's children");
	session_init(&session, &server, base, config, base_env, &own, &cgroup);
	session.report = report;
	session.open_recording = open_recording;
	session.ask_keep = ask_keep;
	session.ask_list = ask_list;
	session.report_detached = report_detached;
	session.report_unwatched = report_unwatched;
	state = RUNNER_CONFIGURED;
	return 0;
}

static int
take_audit(const struct command *c)
{
	if (session.record != NULL || c->in->audit.files > AUDIT_FILES_ALL)
		return -EBADMSG;
	audit_begin(&session, &c->in->audit);
	return 0;
}

static int
take_audit_state(const struct command *c)
{
	if (session.record == NULL)
		return -EBADMSG;
	session.record->fails = !c->in->audit_state.works;
	if (c->in->audit_state.process[0] != '\0')
		audit_end_unrecorded(&session, c->in->audit_state.process);
	return 0;
}

/* No client is attached before the sandbox limits came; there is no default.
 * They come again with each new broker. What runs keeps those of its start. */
static int
take_sandbox(const struct command *c)
{
	const struct sandbox_limits *l = &c->in->sandbox;

	if (l->max_profile > SANDBOX_PROFILE_FULL ||
	    l->unix_sockets > SANDBOX_UNIX_ALLOW ||
	    l->nested_git > SANDBOX_NESTED_HOOKS ||
	    l->environment > SANDBOX_ENVIRONMENT_ALL ||
	    l->tmp > SANDBOX_TMP_PRIVATE || l->tmpdir > SANDBOX_TMP_REQUEST ||
	    l->network_connections == 0 ||
	    l->network_connections > SANDBOX_NETWORK_CONNECTIONS_MAX)
		return -EBADMSG;
	session_limit(&session, l);
	if (state == RUNNER_CONFIGURED) {
		state = RUNNER_READY;
		return 0;
	}
	/* Both have copies of what was. */
	helper_stop_http(&session);
	starting_decide_again(&session);
	file_router_decide_again(&session);
	return 0;
}

/*
 * Changes to the user's home, if permitted; a missing home is not an error.
 * This is done now because the runner may have waited since it was made.
 */
static void
go_home(void)
{
	if (session.config.pid_namespace && chdir(session.config.home) < 0)
		log_warn(-errno, "%s", session.config.home);
}

static int
take_attach(const struct command *c)
{
	if (session.generation == 0) {
		go_home();
		session.attached_ms = now_ms();
	}
	session_attach(&session, c->fds[0], &c->in->attach,
	    c->type == RUNNER_COMMAND_ATTACH_PROXIED);
	return 0;
}

/* Another connection wants the session. */
static int
take_probe(const struct command *c)
{
	session_probe(&session, c->in->probe.number);
	return 0;
}

static int
take_watch(const struct command *c)
{
	session.last_watcher = c->in->watch.number;
	watcher_add(&session, c->fds[0], &c->in->watch);
	return 0;
}

/*
 * DETACH: the connection has ended for the broker. Usually the channel ended
 * first, and there is nothing left to do. KEEP and LIST: a second answer to a
 * question that two brokers have read, because the first died before it
 * answered, and the runner asked again.
 */
static int
take_nothing(const struct command *c)
{
	return 0;
}

static int
take_terminate(const struct command *c)
{
	/* A broker that leaves and the next one may both end a session. */
	if (state == RUNNER_TERMINATING)
		return 0;
	state = RUNNER_TERMINATING;
	session_terminate(&session);
	if (!reaper_has_children())
		end_runner();
	return 0;
}

/* It means nothing here. */
static int
take_token(const struct command *c)
{
	token = c->in->token;
	return 0;
}

static void
report_running(const struct session_process *p)
{
	struct control_running r;

	audit_copy_id(r.process, (struct slice){ p->id, p->id_len });
	report(RUNNER_EVENT_RUNNING, &r);
}

/* Asked by a new broker: the one that knew this runner is gone. */
static int
take_identify(const struct command *c)
{
	struct control_identity i = {
		.generation = session.generation,
		.watches = session.last_watcher,
		.recordings = recordings,
		.age_ms = session.generation > 0
			      ? (uint64_t)(now_ms() - session.attached_ms)
			      : 0,
		.empty = is_empty(&session),
		.audited = session.record != NULL,
		.terminating = state == RUNNER_TERMINATING,
	};
	const struct session_process *p;

	memcpy(i.peer, session.client.peer, sizeof(i.peer));
	/* It comes first, so that the broker knows it as soon as it knows the
	 * session. */
	keep_report(&session);
	if (token.there)
		report(RUNNER_EVENT_TOKEN, &token);
	report(RUNNER_EVENT_IDENTITY, &i);
	TAILQ_FOREACH (p, &session.started, link)
		if (i.audited && !p->process.state.exited && !p->unrecorded)
			report_running(p);
	return 0;
}

/* Its argv may have been longer than what is kept of it. */
static void
show_command(struct control_shown *to, const struct session_process *p)
{
	char text[CONTROL_COMMAND_MAX];
	char **argv = xcalloc(p->command_len + 1, sizeof(*argv));
	size_t n = 0, at;
	bool cut;

	for (at = 0; at < p->command_len; at += strlen(p->command + at) + 1)
		argv[n++] = p->command + at;
	audit_command(&session, argv, text, &cut);
	free(argv);
	cut |= audit_copy(to->command, sizeof(to->command), slice_of(text));
	to->cut = cut || p->command_cut;
	audit_copy_id(to->process, (struct slice){ p->id, p->id_len });
	to->age_ms = (uint64_t)(now_ms() - p->started_mono_ms);
	to->pid = (uint32_t)p->process.leader;
}

/* An operator looks (execd-ctl(8), `show'). */
static int
take_commands(const struct command *c)
{
	struct control_commands *all = xcalloc(1, sizeof(*all));
	const struct session_process *p;

	TAILQ_FOREACH (p, &session.started, link) {
		if (p->process.state.exited || p->process.leader <= 0)
			continue;
		all->more = all->count == CONTROL_SHOWN_MAX;
		if (all->more)
			break;
		show_command(&all->commands[all->count++], p);
	}
	report(RUNNER_EVENT_COMMANDS, all);
	free(all);
	return 0;
}

#define FDS_VARY	 SIZE_MAX /* the command says how many */
#define READY_OR_ENDING	 (RUNNER_READY | RUNNER_TERMINATING)
#define CONFIGURED_OR_ON (RUNNER_CONFIGURED | READY_OR_ENDING)

static const struct runner_command {
	enum control_type type;
	unsigned when;
	size_t nfds;
	int (*take)(const struct command *c);
} runner_commands[] = {
	{ RUNNER_COMMAND_CONFIGURE, RUNNER_FRESH, FDS_VARY, take_configure },
	{ RUNNER_COMMAND_AUDIT, RUNNER_CONFIGURED, 0, take_audit },
	{ RUNNER_COMMAND_SANDBOX, CONFIGURED_OR_ON, 0, take_sandbox },
	{ RUNNER_COMMAND_AUDIT_STATE, CONFIGURED_OR_ON, 0, take_audit_state },
	{ RUNNER_COMMAND_ATTACH, RUNNER_READY, 1, take_attach },
	{ RUNNER_COMMAND_ATTACH_PROXIED, RUNNER_READY, 1, take_attach },
	{ RUNNER_COMMAND_PROBE, READY_OR_ENDING, 0, take_probe },
	{ RUNNER_COMMAND_WATCH, RUNNER_READY, 1, take_watch },
	{ RUNNER_COMMAND_DETACH, READY_OR_ENDING, 0, take_nothing },
	{ RUNNER_COMMAND_TERMINATE, READY_OR_ENDING, 0, take_terminate },
	{ RUNNER_COMMAND_KEEP, READY_OR_ENDING, 0, take_nothing },
	{ RUNNER_COMMAND_LIST, READY_OR_ENDING, 0, take_nothing },
	{ RUNNER_COMMAND_TOKEN, READY_OR_ENDING, 0, take_token },
	{ RUNNER_COMMAND_COMMANDS, READY_OR_ENDING, 0, take_commands },
	{ RUNNER_COMMAND_IDENTIFY, READY_OR_ENDING, 0, take_identify },
};

static int
take_one(const struct runner_command *row, const uint8_t *packet, size_t len,
    const int *fds, size_t nfds)
{
	const struct command c = { row->type, nfds, fds, &payload_in };
	int err = control_get(packet, len, row->type, &payload_in);

	/*
	 * A broker of another version learns this runner's version from the
	 * answer, and decides.
	 */
	if (err == -EPROTO && row->type == RUNNER_COMMAND_IDENTIFY)
		err = 0;
	if (err < 0 || !(row->when & state) ||
	    (row->nfds != FDS_VARY && row->nfds != nfds))
		return -EBADMSG;
	return row->take(&c);
}

/* Carries out a command of the broker; an impossible one ends the runner. */
static void
take(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	enum control_type type = control_peek(packet, len);
	char fault[CONTROL_FAULT_MAX];

	for (size_t i = 0; i < nitems(runner_commands); i++) {
		if (runner_commands[i].type != type)
			continue;
		if (take_one(&runner_commands[i], packet, len, fds, nfds) < 0)
			break;
		return;
	}
	log_fatal("impossible command from the broker: %s",
	    control_fault(packet, len, fault));
}

/* A command that came during the wait; it is taken next. */
struct stashed_order {
	STAILQ_ENTRY(stashed_order) link; /* stash */
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds, len;
	uint8_t packet[];
};
static STAILQ_HEAD(, stashed_order) stash = STAILQ_HEAD_INITIALIZER(stash);
static unsigned stashed;

/* More than the broker sends in such a short time. */
#define STASH_MAX 1024

/*
 * Carries out the commands that were put off. Called by an event, and before
 * the next command is taken.
 */
static void
take_stashed_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stashed_order *o;

	while ((o = STAILQ_FIRST(&stash)) != NULL) {
		STAILQ_REMOVE_HEAD(&stash, link);
		stashed--;
		take(o->packet, o->len, o->fds, o->nfds);
		free(o);
	}
}

/* Returns false if there is no command to take. */
static bool
take_next(void)
{
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	reserve_give(1);
	n = seqpacket_recv(
	    CONTROL_FD, packet_in, sizeof(packet_in), fds, &nfds);
	if (n == -EAGAIN)
		return false;
	take_stashed_cb(-1, 0, NULL);
	if (n > 0) {
		take(packet_in, (size_t)n, fds, nfds);
		return true;
	}
	/* Root's execd holds a copy of the other end, so the channel outlives a
	 * broker. Its end means that root's execd is gone too, or that nobody
	 * needs a spare any more. */
	if (session.generation != 0)
		log_error(n < 0 ? (int)n : 0, "the broker is gone");
	end_runner();
}

static void
control_cb(evutil_socket_t fd, short what, void *arg)
{
	take_next();
}

/* Until the runner knows whose session this is, it waits for nothing else. */
static void
take_first(void)
{
	struct pollfd next = { .fd = CONTROL_FD, .events = POLLIN };

	while (state & (RUNNER_FRESH | RUNNER_CONFIGURED))
		if (!take_next())
			poll(&next, 1, -1);
}

void
commands_run(struct event_base *event_base, char **env)
{
	struct event *control = event_new(
	    event_base, CONTROL_FD, EV_READ | EV_PERSIST, control_cb, NULL);

	base = event_base;
	base_env = env;
	if (control == NULL)
		log_fatal("control channel: no event");
	loop_add(control, NULL);
	/* Each process needs up to four descriptors. */
	descriptors_raise_all();
	/* Processes of the same user must not read or control this one. Root
	 * made it the first process of its pid namespace, and has kept them
	 * out until now by a capability (drop_to_user()). */
	prctl(PR_SET_DUMPABLE, 0);
	if (getpid() == 1)
		drop_capabilities();
	heap_init(base);
	heap_scratch(packet_in, sizeof(packet_in));
	heap_scratch(&payload_in, sizeof(payload_in));
	take_first();
	heap_turn(); /* a spare runner may wait long for its next command */
	for (;;) {
		loop_turn(base);
		/* One write for everything composed in this turn. */
		channel_flush(&session.client.channel);
		session_finish_if_answered(&session);
		watchers_flush(&session);
		heap_turn();
		reserve_keep();
	}
}

/* --- a question to the broker ------------------------------------------- */

/*
 * Asks the broker for the file of a terminal's recording, or to keep the
 * session. The runner waits for the answer; other commands of the broker that
 * arrive meanwhile are put off.
 */

#define ERRNO_MAX 4095

static void
put_off(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct stashed_order *o = xmalloc(sizeof(*o) + len);

	if (++stashed > STASH_MAX)
		log_fatal("the broker sent %d commands instead of an answer",
		    STASH_MAX);
	o->len = len;
	o->nfds = nfds;
	memcpy(o->packet, packet, len);
	memcpy(o->fds, fds, nfds * sizeof(int));
	if (STAILQ_EMPTY(&stash) &&
	    event_base_once(base, -1, EV_TIMEOUT, take_stashed_cb, NULL,
		&(struct timeval){ 0, 0 }) < 0)
		log_fatal("commands put off: no event");
	STAILQ_INSERT_TAIL(&stash, o, link);
}

/*
 * Receives one packet into the caller's buffers. Returns its length, or 0 if
 * there was none. The broker never waits for a runner, so this wait is bounded
 * too.
 */
static size_t
hear(uint8_t packet[CONTROL_MESSAGE_MAX], int *fds, size_t *nfds)
{
	struct pollfd in = { .fd = CONTROL_FD, .events = POLLIN };
	ssize_t n;

	if (poll(&in, 1, REPORT_WAIT_MS) <= 0)
		log_fatal("the broker does not answer");
	n = seqpacket_recv(CONTROL_FD, packet, CONTROL_MESSAGE_MAX, fds, nfds);
	if (n == 0 || (n < 0 && n != -EAGAIN)) {
		log_error((int)n, "the broker is gone");
		end_runner();
	}
	return n > 0 ? (size_t)n : 0;
}

struct question {
	enum control_type type, answer_type;
	const void *payload;
};

static void
ask(const struct question *q)
{
	recordings += q->type == RUNNER_EVENT_RECORDING_FILE;
	report(q->type, q->payload);
}

/*
 * Waits for the answer and its descriptors. If the broker ended before it
 * answered, the next broker is asked again.
 */
static void
wait_for(const struct question *q, void *answer, int *fds, size_t *nfds)
{
	const enum control_type type = q->answer_type;

	static heap_aligned uint8_t packet[CONTROL_MESSAGE_MAX];

	for (;;) {
		size_t len = hear(packet, fds, nfds);

		if (len > 0 && control_peek(packet, len) == type) {
			if (control_get(packet, len, type, answer) < 0)
				impossible(type);
			return;
		}
		if (len > 0 &&
		    control_peek(packet, len) == RUNNER_COMMAND_IDENTIFY) {
			take(packet, len, fds, *nfds);
			ask(q);
		} else if (len > 0) {
			put_off(packet, len, fds, *nfds);
		}
	}
}

/* session.open_recording. */
static int
open_recording(struct slice process)
{
	struct control_recording_wanted wanted = { 0 };
	const struct question q = { RUNNER_EVENT_RECORDING_FILE,
		RUNNER_COMMAND_RECORDING_FILE, &wanted };
	struct control_recording_file file;
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;

	audit_copy_id(wanted.process, process);
	ask(&q);
	wait_for(&q, &file, fds, &nfds);
	if (nfds != (file.error == 0) || file.error > ERRNO_MAX)
		impossible(RUNNER_COMMAND_RECORDING_FILE);
	return file.error == 0 ? fds[0] : -(int)file.error;
}

/* For questions without a descriptor, whose answers may come twice. */
static void
ask_number(const struct question *q, uint32_t number, void *answer,
    const uint32_t *answered)
{
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;

	ask(q);
	do {
		wait_for(q, answer, fds, &nfds);
		if (nfds != 0)
			impossible(q->answer_type);
	} while (*answered != number);
}

/* session.ask_keep. */
static void
ask_keep(const struct control_keep_wanted *wanted, struct control_keep *answer)
{
	const struct question q = { RUNNER_EVENT_KEEP, RUNNER_COMMAND_KEEP,
		wanted };

	ask_number(&q, wanted->number, answer, &answer->number);
}

/* session.ask_list. */
static void
ask_list(const struct control_list_wanted *wanted, struct control_list *answer)
{
	const struct question q = { RUNNER_EVENT_LIST, RUNNER_COMMAND_LIST,
		wanted };

	ask_number(&q, wanted->number, answer, &answer->number);
	if (answer->count > CONTROL_LISTED_MAX)
		impossible(RUNNER_COMMAND_LIST);
}
