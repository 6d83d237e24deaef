/* SPDX-License-Identifier: ISC */
#include "helper.h"

#include <event2/event.h>

#include "descriptors.h"
#include "environment.h"
#include "frame.h"
#include "heap.h"
#include "loop.h"
#include "own_ports.h"

#define QUEUE_MAX_BYTES (512u << 20) /* of requests, for one helper */

/* The interval at which a helper that owes an answer is checked. */
#define LOOK_SECONDS 5
/* A helper found stopped this many times in a row is replaced. */
#define LOOKS_STOPPED 2
/* A file helper that has been in one wait for so many intervals, too. */
#define LOOKS_STUCK 2

/* The bytes of a decision of execd-http, at most. */
#define DECIDED_MAX 1024

/* A request that is not answered yet. */
struct forwarded {
	STAILQ_ENTRY(forwarded) link; /* helper.waiting */
	uint32_t number;
	struct rpc_id id;
	struct spool *spool; /* sent with it; NULL: none */
	size_t at; /* with a spool: position of its frame in helper.queue */
	bool sent; /* with a spool: its frame has begun to be sent */
	struct file_note note; /* HELPER_FILES */
};

struct helper {
	TAILQ_ENTRY(helper) link; /* session.helpers */
	enum helper_kind kind;
	struct sandbox *sandbox; /* it runs in; NULL: none */
	struct session *session;
	struct reaper_watch watch;
	int wait_status; /* when it was reaped */
	int fd;
	struct event in_event, out_event;
	struct event look_event; /* pending while it owes an answer */
	unsigned stopped;	 /* checks in a row that found it stopped */
	unsigned stuck;		 /* and in the same wait as before */
	uint64_t switches;	 /* how often it had run by the last check */
	bool reading;
	struct buf queue; /* request frames not completely written */
	size_t queue_at;
	unsigned spools;		  /* spools of requests in `queue` */
	STAILQ_HEAD(, forwarded) waiting; /* in the order of requests */
	uint32_t number;		  /* of the newest request */
	unsigned streams; /* answers whose stream has not ended */
	uint8_t header[FRAME_TAGGED_BYTES];
	uint8_t header_len;
	uint32_t telling; /* bytes to come of a frame for the runner itself */
	struct buf told;  /* those that have come */
	bool answering;	  /* a file request's answer is being relayed */
	bool failed;
	struct file_note note;
};

void helper_out_cb(evutil_socket_t fd, short what, void *arg);

static void helper_in_cb(evutil_socket_t fd, short what, void *arg);

/* The programs of the helpers. */
static const struct helper_program {
	const char *name; /* for errors */
	const char *argv[3];
	bool environment; /* gets the session's environment */
} programs[HELPER_KINDS] = {
	[HELPER_FILES] = { "the file helper",
	    { "execd-files", "--files", NULL }, false },
	[HELPER_HTTP] = { "execd-http", { "execd-http", NULL }, true },
	[HELPER_NETPROXY] = { "execd-netproxy", { "execd-netproxy", NULL },
	    false },
};

/* The helper's name in errors, such as "the file helper". */
static const char *
helper_name(const struct helper *h)
{
	return programs[h->kind].name;
}

/* The request is answered, or never will be. Frees f. */
static void
helper_forwarded_free(struct helper *h, struct forwarded *f)
{
	STAILQ_REMOVE(&h->waiting, f, forwarded, link);
	h->session->client.waiting--;
	rpc_id_clear(&f->id);
	if (f->spool != NULL && !f->sent)
		h->spools--;
	spool_free(f->spool);
	free(f);
}

static void
helper_free(struct helper *h)
{
	event_del(&h->in_event);
	event_del(&h->out_event);
	event_del(&h->look_event);
	close(h->fd);
	reaper_remove(&h->watch);
	buf_clear(&h->queue);
	buf_clear(&h->told);
	while (!STAILQ_EMPTY(&h->waiting))
		helper_forwarded_free(h, STAILQ_FIRST(&h->waiting));
	free(h);
}

/* Requests sent to this helper will not be answered by it, and its handles are
 * closed: file_router_forget() has `how`. */
static void
forget_files(struct helper *h, const char *how)
{
	struct file_router *files = h->session->files;
	unsigned unanswered = h->answering;
	struct forwarded *f;

	STAILQ_FOREACH (f, &h->waiting, link)
		unanswered++;
	files->outstanding -= unanswered;
	file_router_forget(h->session, h, how);
	if (h->sandbox == NULL)
		return;
	if (unanswered > 0)
		sandbox_release(h->sandbox);
	h->sandbox->helpers--;
}

static void
stop(struct helper *h, const char *how)
{
	struct session *s = h->session;

	TAILQ_REMOVE(&s->helpers, h, link);
	if (s->relaying == h)
		s->relaying = NULL;
	if (h->kind == HELPER_FILES)
		forget_files(h, how);
	if (h->watch.pid > 0)
		kill(h->watch.pid, SIGKILL);
	helper_free(h);
}

void
helper_stop_http(struct session *s)
{
	struct helper *h, *next;

	TAILQ_FOREACH_SAFE (h, &s->helpers, link, next)
		if (h->kind == HELPER_HTTP)
			stop(h, NULL);
}

void
helper_stop_all(struct session *s)
{
	while (!TAILQ_EMPTY(&s->helpers))
		stop(TAILQ_FIRST(&s->helpers), NULL);
	file_router_clear(s);
}

/* A helper that ended unexpectedly, until it is reaped. */
struct departed {
	struct reaper_watch watch;
	const char *name;
};

static void
log_end(const char *name, int wait_status)
{
	bool killed = WIFSIGNALED(wait_status);

	log_error(0, "%s ended %s %d", name,
	    killed ? "by signal" : "with status",
	    killed ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
}

static void
departed_ended(
    struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
	struct departed *d = TABLE_OBJECT(w, struct departed, watch);

	log_end(d->name, wait_status);
	free(d);
}

/* Its channel ends before it can be reaped, so how it ended is logged later. */
static void
watch_end(pid_t pid, const char *name)
{
	struct departed *d = xcalloc(1, sizeof(*d));

	d->name = name;
	reaper_add(&d->watch, pid, departed_ended);
}

/*
 * Ends a failed helper. Half an answer cannot be taken back, and a client would
 * wait for the rest of a stream; in these cases the connection ends.
 */
static void
fail(struct helper *h, const char *how)
{
	struct session *s = h->session;
	const char *name = helper_name(h);
	struct forwarded *f;

	/* When its session is over, it gets the signals of that. */
	if (!s->terminating)
		log_error(0, "%s %s", name, how);
	if (s->relaying == h || h->streams > 0) {
		session_detach(s, CHANNEL_END_RUNNER);
		return;
	}
	STAILQ_FOREACH (f, &h->waiting, link)
		reply_error(&s->client.channel, &f->id, RPC_INTERNAL,
		    "%s of this session %s", name, how);
	stop(h, how);
	file_router_resume(s);
}

/*
 * The helper died or broke the rules: waiting requests are answered with an
 * error, and the next request starts another helper. May free h.
 */
static void
helper_failed(struct helper *h)
{
	bool tells = !h->session->terminating;
	const char *name = helper_name(h);
	pid_t pid = h->watch.pid;

	if (tells && pid <= 0)
		log_end(name, h->wait_status);
	fail(h, "ended unexpectedly");
	if (tells && pid > 0)
		watch_end(pid, name);
}

/* --- a helper that is stopped ------------------------------------------- */

static bool
owes_answer(const struct helper *h)
{
	return !STAILQ_EMPTY(&h->waiting) || h->session->relaying == h ||
	       h->streams > 0;
}

/*
 * Called after a request was forwarded: begins checking whether the helper is
 * stopped by a signal, or waits for one file system. It may take any time for
 * an answer as long as it goes on.
 */
static void
helper_look(struct helper *h)
{
	if (!event_pending(&h->look_event, EV_TIMEOUT, NULL))
		loop_add_ms(&h->look_event, LOOK_SECONDS * 1000);
}

/*
 * Ends a file helper that waits for a file system which does not answer. It
 * serves in order, so the first request is the one that waits.
 */
static void
replace_stuck(struct helper *h)
{
	const int seconds = LOOKS_STUCK * LOOK_SECONDS;
	struct session *s = h->session;
	struct forwarded *f = STAILQ_FIRST(&h->waiting);

	if (s->relaying == h || f == NULL) {
		fail(h, "waits for a file system, and is replaced");
		return;
	}
	log_warn(0, "a file system did not answer within %d s", seconds);
	reply_error(&s->client.channel, &f->id, RPC_INTERNAL,
	    "the file system did not answer within %d s (os error %d)", seconds,
	    ETIMEDOUT);
	while ((f = STAILQ_NEXT(f, link)) != NULL)
		reply_error(&s->client.channel, &f->id, RPC_INTERNAL,
		    "not carried out: the file helper was replaced, because a "
		    "file system did not answer the request before within "
		    "%d s (os error %d)",
		    seconds, ECANCELED);
	stop(h, "waited for a file system, and is replaced");
	file_router_resume(s);
}

/* Who waits for the client to read, or to write, does not wait for a disk. */
static bool
is_stuck(const struct helper *h, uint64_t *switches)
{
	return reaper_is_waiting(&h->watch, switches) &&
	       h->kind == HELPER_FILES && h->reading;
}

/*
 * There is no deadline for a request: a tree may be large, and a disk or a
 * server slow. But a helper that is stopped never answers, and one that did not
 * run at all is in a single system call. There its file system must answer.
 */
static void
look_cb(evutil_socket_t fd, short what, void *arg)
{
	struct helper *h = arg;
	uint64_t switches;
	bool same = is_stuck(h, &switches) && switches == h->switches;

	h->stopped = reaper_is_stopped(&h->watch) ? h->stopped + 1 : 0;
	h->stuck = same ? h->stuck + 1 : 0;
	h->switches = switches;
	if (!owes_answer(h))
		h->stopped = h->stuck = 0;
	else if (h->stopped >= LOOKS_STOPPED)
		fail(h, "was stopped by a signal, and is replaced");
	else if (h->stuck >= LOOKS_STUCK)
		replace_stuck(h);
	else
		helper_look(h);
}

/* The end of a helper is noticed by its socket. If it is reaped before, this
 * says how it ended. */
static void
ended(struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
	TABLE_OBJECT(w, struct helper, watch)->wait_status = wait_status;
}

/* Each connection of the helper is judged by them. */
static bool
place_own_ports(const struct session *s)
{
	return s->own_ports == OWN_PORTS_FD
		   ? fcntl(OWN_PORTS_FD, F_SETFD, 0) == 0
		   : dup2(s->own_ports, OWN_PORTS_FD) >= 0;
}

/*
 * The helper's child process. Never returns; runs in the runner's memory until
 * exec.
 */
static void __attribute__((noreturn))
child(const struct session *s, enum helper_kind kind, int fd, char *const *env)
{
	const struct helper_program *program = &programs[kind];
	const int fds[HELPER_KINDS] = { [HELPER_FILES] = s->files_program,
		[HELPER_HTTP] = s->http_program,
		[HELPER_NETPROXY] = s->netproxy_program };
	char **argv = (char **)(uintptr_t)program->argv;
	sigset_t unblocked;

	sigemptyset(&unblocked);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, CONTROL_FD) < 0 ||
	    (kind != HELPER_FILES && !place_own_ports(s)))
		_exit(127);
	if (kind == HELPER_FILES && placeholders_lists() >= 0)
		fcntl(PLACEHOLDERS_FD, F_SETFD, 0);
	descriptors_restore();
	execveat(fds[kind], "", argv, env, AT_EMPTY_PATH);
	_exit(127);
}

/*
 * Starts a file helper in a sandbox, without exec, because the program may not
 * be visible there.
 */
static pid_t
start_in_sandbox(struct sandbox *sandbox, int fd)
{
	struct sandbox_answer a;
	int err = sandbox_start_files(sandbox, fd, &a);

	if (err == 0)
		return a.command;
	log_error(err, "sandbox: %s", a.step);
	errno = -err;
	return -1;
}

/* What execd-http may reach is in its environment, which no other user reads.
 * The caller frees the result. */
static char **
with_rules(const struct session *s)
{
	struct buf b;
	char **env;

	buf_init(&b, NETPROXY_MESSAGE_MAX);
	network_put_rules(&b, &s->sandbox.everything, &s->network_limits);
	if (b.failed)
		log_fatal("the operator's hosts do not fit into a variable");
	env = environment_with(
	    s->env, HTTP_RULES, (struct slice){ (char *)b.data, b.len });
	buf_clear(&b);
	return env;
}

static pid_t
spawn_in(
    const struct session *s, enum helper_kind kind, int fd, char *const *env)
{
	pid_t pid = vfork();

	if (pid == 0)
		child(s, kind, fd, env);
	return pid;
}

pid_t
helper_spawn(const struct session *s, enum helper_kind kind, int fd)
{
	char *const *env = programs[kind].environment ? s->env : s->homes;
	_cleanup_free_ char **held = NULL;

	if (kind == HELPER_HTTP && ceiling_holds_requests(&s->sandbox.ceiling))
		env = held = with_rules(s);
	return spawn_in(s, kind, fd, env);
}

static struct helper *
start(struct session *s, enum helper_kind kind, struct sandbox *sandbox)
{
	struct helper *h;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return NULL;
	pid = sandbox != NULL ? start_in_sandbox(sandbox, pair[1])
			      : helper_spawn(s, kind, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return NULL;
	}
	h = xcalloc(1, sizeof(*h));
	h->kind = kind;
	h->session = s;
	h->sandbox = sandbox;
	if (sandbox != NULL)
		sandbox->helpers++;
	h->fd = pair[0];
	set_nonblock(h->fd);
	buf_init(&h->queue, QUEUE_MAX_BYTES);
	buf_init(&h->told, DECIDED_MAX);
	STAILQ_INIT(&h->waiting);
	reaper_add(&h->watch, pid, ended);
	event_assign(&h->in_event, s->base, h->fd, EV_READ | EV_PERSIST,
	    helper_in_cb, h);
	event_assign(&h->out_event, s->base, h->fd, EV_WRITE, helper_out_cb, h);
	event_assign(&h->look_event, s->base, -1, 0, look_cb, h);
	loop_watch(&h->in_event, &h->reading, true);
	TAILQ_INSERT_HEAD(&s->helpers, h, link);
	return h;
}

struct helper *
helper_get(struct session *s, enum helper_kind kind, struct sandbox *sandbox)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->kind == kind && h->sandbox == sandbox)
			return h;
	return start(s, kind, sandbox);
}

struct sandbox *
helper_sandbox(const struct helper *h)
{
	return h->sandbox;
}

bool
helper_give_up(struct session *s, const struct sandbox *sandbox)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->sandbox == sandbox)
			break;
	if (h == NULL)
		return true;
	if (h->answering || !STAILQ_EMPTY(&h->waiting) ||
	    file_router_has_handles(s, h))
		return false;
	stop(h, NULL);
	return true;
}

/* --- traffic ------------------------------------------------------------ */

/* With more queued for a helper, the client is paused. */
#define QUEUE_PAUSE_BYTES (1u << 20)

#define READ_BYTES (128u << 10)
static heap_aligned uint8_t scratch[READ_BYTES];

void
helper_resume_all(struct session *s)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		loop_watch(&h->in_event, &h->reading, true);
}

/* Returns false if the tag belongs to no open request. */
static bool
take_tag(struct helper *h, uint32_t tag)
{
	uint32_t number = tag & FRAME_NUMBER;
	struct forwarded *f;

	if (number == 0) {
		if (tag & FRAME_STREAM && h->streams-- == 0)
			return false;
		return true;
	}
	STAILQ_FOREACH (f, &h->waiting, link)
		if (f->number == number)
			break;
	if (f == NULL)
		return false;
	h->note = f->note;
	h->failed = tag & FRAME_FAILED;
	h->answering = h->kind == HELPER_FILES;
	helper_forwarded_free(h, f);
	if (tag & FRAME_STREAM)
		h->streams++;
	return true;
}

/* Takes a part of a decision about a request, and reports what is complete. */
static bool
take_decided(struct helper *h, const uint8_t *p, size_t n)
{
	union netproxy_message m;

	buf_put(&h->told, p, n);
	h->telling -= (uint32_t)n;
	if (h->telling > 0)
		return true;
	if (netproxy_get(h->told.data, h->told.len, &m) != NETPROXY_DECIDED)
		return false;
	audit_request_network(h->session, &m.decided);
	buf_clear(&h->told);
	return true;
}

/* The header of the next frame is complete: begins to relay it, unless it is
 * for the runner itself. */
static bool
begin_frame(struct helper *h)
{
	uint32_t len = frame_get_length(h->header);
	uint32_t tag = frame_get_length(h->header + FRAME_HEADER_BYTES);
	struct session *s = h->session;

	h->header_len = 0;
	if (len > 0 && tag == FRAME_DECIDED) {
		h->telling = len;
		return h->kind == HELPER_HTTP && len <= DECIDED_MAX;
	}
	if (len == 0 || !take_tag(h, tag))
		return false;
	channel_relay_begin(&s->client.channel, len);
	s->relaying = h;
	return true;
}

/* The frame is complete; others may get their turn. */
static void
end_relay(struct helper *h)
{
	h->session->relaying = NULL;
	if (!h->answering)
		return;
	file_router_answered(h->session, h, &h->note, h->failed);
	h->answering = false;
}

/*
 * Passes parts of answers into the session's channel. Returns false if the data
 * is not a valid frame.
 */
static bool
relay(struct helper *h, const uint8_t *p, size_t n)
{
	struct session *s = h->session;

	while (n > 0) {
		bool relays = s->relaying == h;
		size_t piece =
		    relays ? s->client.channel.relay_left : h->telling;

		if (piece == 0) {
			h->header[h->header_len++] = *p++;
			n--;
			if (h->header_len == FRAME_TAGGED_BYTES &&
			    !begin_frame(h))
				return false;
			continue;
		}
		if (piece > n)
			piece = n;
		if (relays)
			channel_relay(&s->client.channel, p, piece);
		else if (!take_decided(h, p, piece))
			return false;
		p += piece;
		n -= piece;
		if (relays && s->client.channel.relay_left == 0)
			end_relay(h);
	}
	return true;
}

/* Event callbacks; arg is the helper. */
static void
helper_in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct helper *h = arg;
	struct session *s = h->session;
	bool was_relaying = s->relaying == h;
	ssize_t n;

	/*
	 * Waits while the client does not read, or while another helper's frame
	 * is being relayed.
	 */
	if (s->client.channel.want_write ||
	    (s->relaying != NULL && !was_relaying)) {
		loop_watch(&h->in_event, &h->reading, false);
		return;
	}
	heap_scratch(scratch, sizeof(scratch));
	n = read(fd, scratch, sizeof(scratch));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || !relay(h, scratch, (size_t)n)) {
		helper_failed(h);
		return;
	}
	/* Others were held back during the frame. */
	if (was_relaying && s->relaying == NULL)
		s->client.channel.on->drained(&s->client.channel);
}

/* Returns the next queued request that has a spool. */
static struct forwarded *
next_spool(struct helper *h)
{
	struct forwarded *f;

	if (h->spools == 0)
		return NULL;
	STAILQ_FOREACH (f, &h->waiting, link)
		if (f->spool != NULL && !f->sent)
			break;
	return f;
}

/*
 * Like write(2): writes the queue up to the next request with a spool, or the
 * header of that request's frame with the spool's descriptor.
 */
static ssize_t
write_queue(struct helper *h, struct forwarded *f)
{
	const uint8_t *at = h->queue.data + h->queue_at;
	ssize_t n;

	if (f == NULL || f->at > h->queue_at)
		return write(h->fd, at,
		    (f != NULL ? f->at : h->queue.len) - h->queue_at);
	n = spool_send(f->spool, h->fd, at, FRAME_HEADER_BYTES);
	if (n > 0) {
		f->sent = true;
		h->spools--;
	}
	return n;
}

static void
flush(struct helper *h)
{
	struct forwarded *f;
	size_t left;
	ssize_t n;

	do {
		f = next_spool(h);
		n = write_queue(h, f);
		h->queue_at += n > 0 ? (size_t)n : 0;
	} while (n > 0 && f != NULL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		/*
		 * The end of file that follows handles the rest, even if the
		 * helper still lives.
		 */
		shutdown(h->fd, SHUT_RDWR);
		return;
	}
	left = h->queue.len - h->queue_at;
	if (left == 0) {
		buf_clear(&h->queue);
		h->queue_at = 0;
	} else {
		loop_add(&h->out_event, NULL);
	}
	helper_pause_client(h->session);
}

uint64_t
helper_oldest_change(const struct session *s)
{
	uint64_t oldest = UINT64_MAX;
	const struct forwarded *f;
	const struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		STAILQ_FOREACH (f, &h->waiting, link)
			if (f->note.change > 0 && f->note.change < oldest)
				oldest = f->note.change;
	return oldest;
}

void
helper_out_cb(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

void
helper_pause_client(struct session *s)
{
	bool behind = s->held_bytes > QUEUE_PAUSE_BYTES;
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->queue.len - h->queue_at > QUEUE_PAUSE_BYTES)
			behind = true;
	channel_pause(&s->client.channel, behind);
}

/*
 * Drops what was sent. A client that never stops sending keeps the queue from
 * getting empty, and without this every byte of an upload would be kept. At
 * least half of the queue is dropped at a time, so each byte is moved once at
 * most.
 */
static void
drop_sent(struct helper *h)
{
	struct forwarded *f;

	if (h->queue_at < h->queue.len / 2)
		return;
	STAILQ_FOREACH (f, &h->waiting, link)
		if (f->spool != NULL && !f->sent)
			f->at -= h->queue_at;
	buf_consume(&h->queue, h->queue_at);
	h->queue_at = 0;
}

/* The frame of a large request is moved into the queue without a copy. */
static void
enqueue(struct helper *h, const char *text, size_t len, bool spooled)
{
	uint8_t header[FRAME_HEADER_BYTES];

	if (h->queue.len == 0 &&
	    channel_take_frame(&h->session->client.channel, text, &h->queue)) {
		h->queue.limit = QUEUE_MAX_BYTES;
		return;
	}
	frame_put_length(header, (uint32_t)len | (spooled ? FRAME_SPOOLED : 0));
	buf_put(&h->queue, header, sizeof(header));
	buf_put(&h->queue, text, len);
}

static bool
has_room(const struct helper *h, size_t len)
{
	return len < QUEUE_MAX_BYTES - FRAME_HEADER_BYTES - h->queue.len;
}

/* Refuses one request if too much is waiting; the session goes on. */
static int
refuse(struct helper *h, struct request *r, const struct file_note *note)
{
	reply_error(r->channel, &r->id, RPC_INTERNAL,
	    "more than %u bytes of requests wait for %s", QUEUE_MAX_BYTES,
	    helper_name(h));
	if (note != NULL && h->kind == HELPER_FILES)
		file_router_answered(r->session, h, note, true);
	return 0;
}

int
helper_forward(struct helper *h, struct request *r,
    const struct file_note *note, const char *text, size_t len)
{
	struct session *s = r->session;
	struct forwarded *f;

	drop_sent(h);
	if (!has_room(h, len))
		return refuse(h, r, note);
	f = xcalloc(1, sizeof(*f));
	f->at = h->queue.len;
	f->spool = r->spool;
	r->spool = NULL;
	h->spools += f->spool != NULL;
	enqueue(h, text, len, f->spool != NULL);
	f->number = h->number = frame_next_number(h->number);
	f->id = r->id;
	if (note != NULL)
		f->note = *note;
	r->id = (struct rpc_id){ 0 };
	STAILQ_INSERT_TAIL(&h->waiting, f, link);
	s->client.waiting++;
	helper_look(h);
	/*
	 * A helper that stopped reading causes no event, so flush() is not
	 * called.
	 */
	if (!event_pending(&h->out_event, EV_WRITE, NULL))
		flush(h);
	else
		helper_pause_client(s);
	return RPC_PENDING;
}
