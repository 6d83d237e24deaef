/*
 * The runner's side of its helpers.
 */
#include "helper.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "descriptors.h"
#include "frame.h"
#include "log.h"
#include "loop.h"
#include "methods.h"
#include "sandbox/nest.h"

/* Requests kept for a helper that is busy; beyond it the client waits. */
#define QUEUE_PAUSE_BYTES (1u << 20)
#define QUEUE_MAX_BYTES	  (512u << 20)

#define READ_BYTES (128u << 10)
static uint8_t scratch[READ_BYTES];

/* What they are. Without a program of its own a helper is this one again. */
static const struct helper_program {
	const char *name; /* in errors */
	const char *argv[3];
	bool environment; /* is given the session's */
} programs[HELPER_KINDS] = {
	[HELPER_FILES] = { "the file helper",
	    { "execd-runner", "--files", NULL }, false },
	[HELPER_HTTP] = { "execd-http", { "execd-http", NULL }, true },
};

/* A request whose answer is due. */
struct forwarded {
	STAILQ_ENTRY(forwarded) link; /* helper.waiting */
	uint32_t number;
	struct rpc_id id;
	struct spool *spool;   /* goes with it; NULL: none */
	size_t at;	       /* spool: its frame in helper.queue, */
	bool sent;	       /* until the frame has begun to go */
	struct file_note note; /* HELPER_FILES */
};

struct helper {
	TAILQ_ENTRY(helper) link; /* session.helpers */
	enum helper_kind kind;
	struct nest *nest; /* it runs in; NULL: none */
	struct session *session;
	struct reaper_watch watch;
	int fd;
	struct event in_event, out_event;
	bool reading;
	struct buf queue; /* request frames not written yet */
	size_t queue_at;
	unsigned spools;		  /* of requests in it */
	STAILQ_HEAD(, forwarded) waiting; /* in the order of requests */
	uint32_t number;		  /* of the newest request */
	unsigned streams;		  /* answered, but not at their end */
	uint8_t header[FRAME_TAGGED_BYTES];
	uint8_t header_len;
	bool answering; /* a file request; what the answer says: */
	bool failed;
	struct file_note note;
};

static void
forwarded_free(struct helper *h, struct forwarded *f)
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
	close(h->fd);
	reaper_remove(&h->watch);
	buf_clear(&h->queue);
	while (!STAILQ_EMPTY(&h->waiting))
		forwarded_free(h, STAILQ_FIRST(&h->waiting));
	free(h);
}

/* What it was asked will not be answered by it. */
static void
forget_files(struct helper *h)
{
	struct file_router *files = &h->session->files;
	unsigned unanswered = h->answering;
	struct forwarded *f;

	STAILQ_FOREACH (f, &h->waiting, link)
		unanswered++;
	files->outstanding -= unanswered;
	file_router_forget(h->session, h);
	if (h->nest == NULL)
		return;
	if (unanswered > 0)
		nest_release(h->nest);
	h->nest->helpers--;
}

static void
stop(struct helper *h)
{
	struct session *s = h->session;

	TAILQ_REMOVE(&s->helpers, h, link);
	if (s->relaying == h)
		s->relaying = NULL;
	if (h->kind == HELPER_FILES)
		forget_files(h);
	if (h->watch.pid > 0)
		kill(h->watch.pid, SIGKILL);
	helper_free(h);
}

void
helper_stop_all(struct session *s)
{
	while (!TAILQ_EMPTY(&s->helpers))
		stop(TAILQ_FIRST(&s->helpers));
	file_router_clear(s);
}

void
helper_pause_client(struct session *s)
{
	bool behind = s->files.held_bytes > QUEUE_PAUSE_BYTES;
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->queue.len - h->queue_at > QUEUE_PAUSE_BYTES)
			behind = true;
	channel_pause(&s->client.channel, behind);
}

/* It died on its own, or said what it must not: whoever waits is told, and
 * the next request starts another. Half an answer cannot be taken back, and
 * of a stream the client would wait for the rest; then the connection ends. */
static void
helper_failed(struct helper *h)
{
	struct session *s = h->session;
	const char *name = programs[h->kind].name;
	struct forwarded *f;

	log_error(0, "%s ended unexpectedly", name);
	if (s->relaying == h || h->streams > 0) {
		session_detach(s, CHANNEL_END_RUNNER);
		return;
	}
	STAILQ_FOREACH (f, &h->waiting, link)
		reply_error(&s->client.channel, &f->id, RPC_INTERNAL,
		    "%s of this session ended unexpectedly", name);
	stop(h);
	file_router_resume(s);
}

static void
set_reading(struct helper *h, bool reading)
{
	if (h->reading == reading)
		return;
	h->reading = reading;
	if (reading)
		loop_add(&h->in_event, NULL);
	else
		event_del(&h->in_event);
}

void
helper_resume_all(struct session *s)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		set_reading(h, true);
}

/* False: the tag answers nothing that was asked. */
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
	forwarded_free(h, f);
	if (tag & FRAME_STREAM)
		h->streams++;
	return true;
}

/* The header of the next frame is complete. */
static bool
begin_relay(struct helper *h)
{
	struct session *s = h->session;

	h->header_len = 0;
	if (frame_get_length(h->header) == 0 ||
	    !take_tag(h, frame_get_length(h->header + FRAME_HEADER_BYTES)))
		return false;
	channel_relay_begin(&s->client.channel, frame_get_length(h->header));
	s->relaying = h;
	return true;
}

/* The frame is whole; now others may have their turn. */
static void
end_relay(struct helper *h)
{
	h->session->relaying = NULL;
	if (!h->answering)
		return;
	file_router_answered(h->session, h, &h->note, h->failed);
	h->answering = false;
}

/* Pieces of answers go straight into the session's channel. False: what came
 * is no frame. */
static bool
relay(struct helper *h, const uint8_t *p, size_t n)
{
	struct session *s = h->session;

	while (n > 0) {
		size_t piece = s->client.channel.relay_left;

		if (s->relaying != h) {
			h->header[h->header_len++] = *p++;
			n--;
			if (h->header_len == FRAME_TAGGED_BYTES &&
			    !begin_relay(h))
				return false;
			continue;
		}
		if (piece > n)
			piece = n;
		channel_relay(&s->client.channel, p, piece);
		p += piece;
		n -= piece;
		if (s->client.channel.relay_left == 0)
			end_relay(h);
	}
	return true;
}

static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct helper *h = arg;
	struct session *s = h->session;
	bool was_relaying = s->relaying == h;
	ssize_t n;

	/* The client does not read, or another helper's frame is under way. */
	if (s->client.channel.want_write ||
	    (s->relaying != NULL && !was_relaying)) {
		set_reading(h, false);
		return;
	}
	n = read(fd, scratch, sizeof(scratch));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || !relay(h, scratch, (size_t)n)) {
		helper_failed(h);
		return;
	}
	/* Others were held back meanwhile. */
	if (was_relaying && s->relaying == NULL)
		s->client.channel.on->drained(&s->client.channel);
}

/* The next request in the queue that has a descriptor with it. */
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

/* As write(2), of the queue up to the next descriptor, or with that one the
 * header of its frame. */
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
		/* Its end of file tells the rest, of one that lives too. */
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

static void
out_cb(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

/* Nothing watches the helper's pid but its socket: this only reaps. */
static void
ended(struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
}

/* Never returns; runs on the runner's memory until it executes. */
static void __attribute__((noreturn))
child(const struct session *s, enum helper_kind kind, int fd)
{
	const struct helper_program *program = &programs[kind];
	char *none[] = { NULL };
	char **env = program->environment ? s->env : none;
	char **argv = (char **)(uintptr_t)program->argv;
	sigset_t unblocked;

	sigemptyset(&unblocked);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, CONTROL_FD) < 0)
		_exit(127);
	descriptors_restore();
	if (kind == HELPER_HTTP)
		execveat(s->http_program, "", argv, env, AT_EMPTY_PATH);
	else
		execve("/proc/self/exe", argv, env);
	_exit(127);
}

/* In a nest: no program is executed, there may be none to see. */
static pid_t
start_in_nest(struct nest *nest, int fd)
{
	struct nest_answer a;
	int err = nest_start_files(nest, fd, &a);

	if (err == 0)
		return a.command;
	log_error(err, "sandbox: %s", a.step);
	errno = -err;
	return -1;
}

static pid_t
start_plain(const struct session *s, enum helper_kind kind, int fd)
{
	pid_t pid = vfork();

	if (pid == 0)
		child(s, kind, fd);
	return pid;
}

static struct helper *
start(struct session *s, enum helper_kind kind, struct nest *nest)
{
	struct helper *h;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return NULL;
	pid = nest != NULL ? start_in_nest(nest, pair[1])
			   : start_plain(s, kind, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return NULL;
	}
	h = xcalloc(1, sizeof(*h));
	h->kind = kind;
	h->session = s;
	h->nest = nest;
	if (nest != NULL)
		nest->helpers++;
	h->fd = pair[0];
	set_nonblock(h->fd);
	buf_init(&h->queue, QUEUE_MAX_BYTES);
	STAILQ_INIT(&h->waiting);
	reaper_add(&h->watch, pid, ended);
	event_assign(
	    &h->in_event, s->base, h->fd, EV_READ | EV_PERSIST, in_cb, h);
	event_assign(&h->out_event, s->base, h->fd, EV_WRITE, out_cb, h);
	set_reading(h, true);
	TAILQ_INSERT_HEAD(&s->helpers, h, link);
	return h;
}

struct helper *
helper_get(struct session *s, enum helper_kind kind, struct nest *nest)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->kind == kind && h->nest == nest)
			return h;
	return start(s, kind, nest);
}

struct nest *
helper_nest(const struct helper *h)
{
	return h->nest;
}

bool
helper_give_up(struct session *s, const struct nest *nest)
{
	struct helper *h;

	TAILQ_FOREACH (h, &s->helpers, link)
		if (h->nest == nest)
			break;
	if (h == NULL)
		return true;
	if (h->answering || !STAILQ_EMPTY(&h->waiting) ||
	    file_router_has_handles(s, h))
		return false;
	stop(h);
	return true;
}

/* A large request is handed on as it lies there. */
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
	if (h->queue.failed)
		log_fatal("more than %u bytes wait for %s", QUEUE_MAX_BYTES,
		    programs[h->kind].name);
}

int
helper_forward(struct helper *h, struct request *r,
    const struct file_note *note, const char *text, size_t len)
{
	struct session *s = r->session;
	struct forwarded *f;

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
	if (!event_pending(&h->out_event, EV_WRITE, NULL))
		flush(h);
	return RPC_PENDING;
}
