/*
 * The runner's side of its file helper.
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
#include "frame.h"
#include "log.h"
#include "methods.h"

/* Requests kept for a helper that is busy; beyond it the client waits. */
#define QUEUE_PAUSE_BYTES (1u << 20)
#define QUEUE_MAX_BYTES	  (512u << 20)

#define READ_BYTES (128u << 10)
static uint8_t scratch[READ_BYTES];

/* A request whose answer is due. */
struct forwarded {
	STAILQ_ENTRY(forwarded) link; /* helper.waiting */
	struct rpc_id id;
};

struct helper {
	struct session *session;
	struct reaper_watch watch;
	int fd;
	struct event in_event, out_event;
	bool reading;
	struct buf queue; /* request frames not written yet */
	size_t queue_at;
	STAILQ_HEAD(, forwarded) waiting; /* in the order of answers */
	uint8_t header[FRAME_HEADER_BYTES];
	uint8_t header_len;
};

static void
pop_waiting(struct helper *h)
{
	struct forwarded *f = STAILQ_FIRST(&h->waiting);

	STAILQ_REMOVE_HEAD(&h->waiting, link);
	h->session->waiting--;
	rpc_id_clear(&f->id);
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
		pop_waiting(h);
	free(h);
}

void
helper_stop(struct session *s)
{
	struct helper *h = s->files;

	if (h == NULL)
		return;
	s->files = NULL;
	if (h->watch.pid > 0)
		kill(h->watch.pid, SIGKILL);
	helper_free(h);
}

/* It died on its own: whoever waits is told, and the next request starts
 * another. Half an answer cannot be taken back; then the connection ends. */
static void
helper_failed(struct helper *h)
{
	struct session *s = h->session;
	struct forwarded *f;

	log_error(0, "the file helper ended unexpectedly");
	if (s->channel.relay_left > 0) {
		session_detach(s, CHANNEL_END_RUNNER);
		return;
	}
	STAILQ_FOREACH (f, &h->waiting, link)
		reply_error(&s->channel, &f->id, RPC_INTERNAL,
		    "the file helper of this session ended unexpectedly");
	helper_stop(s);
	channel_pause(&s->channel, false);
}

static void
set_reading(struct helper *h, bool reading)
{
	if (h->reading == reading)
		return;
	h->reading = reading;
	if (reading)
		event_add(&h->in_event, NULL);
	else
		event_del(&h->in_event);
}

void
helper_resume(struct session *s)
{
	if (s->files != NULL)
		set_reading(s->files, true);
}

/* Pieces of answers go straight into the session's channel. */
static void
relay(struct helper *h, const uint8_t *p, size_t n)
{
	struct channel *ch = &h->session->channel;

	while (n > 0) {
		size_t piece = n < ch->relay_left ? n : ch->relay_left;

		if (ch->relay_left == 0) {
			h->header[h->header_len++] = *p++;
			n--;
			if (h->header_len < FRAME_HEADER_BYTES)
				continue;
			h->header_len = 0;
			channel_relay_begin(ch, frame_get_length(h->header));
			continue;
		}
		channel_relay(ch, p, piece);
		p += piece;
		n -= piece;
		if (ch->relay_left == 0 && !STAILQ_EMPTY(&h->waiting))
			pop_waiting(h);
	}
}

static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct helper *h = arg;
	struct session *s = h->session;
	bool was_relaying = s->channel.relay_left > 0;
	ssize_t n;

	if (s->channel.want_write) {
		set_reading(h, false);
		return;
	}
	n = read(fd, scratch, sizeof(scratch));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		helper_failed(h);
		return;
	}
	relay(h, scratch, (size_t)n);
	/* Others were held back meanwhile. */
	if (was_relaying && s->channel.relay_left == 0)
		s->channel.on->drained(&s->channel);
}

static void
flush(struct helper *h)
{
	size_t left = h->queue.len - h->queue_at;
	ssize_t n = write(h->fd, h->queue.data + h->queue_at, left);

	if (n > 0)
		h->queue_at += (size_t)n;
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return; /* its end of file tells the rest */
	left = h->queue.len - h->queue_at;
	if (left == 0) {
		buf_clear(&h->queue);
		h->queue_at = 0;
	} else {
		event_add(&h->out_event, NULL);
	}
	channel_pause(&h->session->channel, left > QUEUE_PAUSE_BYTES);
}

static void
out_cb(evutil_socket_t fd, short what, void *arg)
{
	flush(arg);
}

/* Nothing watches the helper's pid but its socket: this only reaps. */
static void
ended(struct reaper_watch *w, int wait_status)
{
}

static void __attribute__((noreturn)) child(int fd)
{
	char *argv[] = { (char *)(uintptr_t) "execd-runner",
		(char *)(uintptr_t) "--files", NULL };
	char *envp[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, CONTROL_FD) < 0)
		_exit(127);
	close_from(CONTROL_FD + 1);
	execve("/proc/self/exe", argv, envp);
	_exit(127);
}

static struct helper *
start(struct session *s)
{
	struct helper *h;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return NULL;
	pid = vfork();
	if (pid == 0)
		child(pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return NULL;
	}
	h = xcalloc(1, sizeof(*h));
	h->session = s;
	h->fd = pair[0];
	set_nonblock(h->fd);
	buf_init(&h->queue, QUEUE_MAX_BYTES);
	STAILQ_INIT(&h->waiting);
	reaper_add(&h->watch, pid, ended);
	event_assign(
	    &h->in_event, s->base, h->fd, EV_READ | EV_PERSIST, in_cb, h);
	event_assign(&h->out_event, s->base, h->fd, EV_WRITE, out_cb, h);
	set_reading(h, true);
	s->files = h;
	return h;
}

int
helper_forward(struct request *r, const char *text, size_t len)
{
	struct session *s = r->session;
	struct helper *h = s->files ? s->files : start(s);
	struct forwarded *f;
	uint8_t header[FRAME_HEADER_BYTES];

	if (h == NULL)
		return reply_os_error(r->channel, &r->id, -errno);
	frame_put_length(header, (uint32_t)len);
	buf_put(&h->queue, header, sizeof(header));
	buf_put(&h->queue, text, len);
	if (h->queue.failed)
		log_fatal("more than %u bytes wait for the file helper",
		    QUEUE_MAX_BYTES);
	f = xcalloc(1, sizeof(*f));
	f->id = r->id;
	r->id = (struct rpc_id){ 0 };
	STAILQ_INSERT_TAIL(&h->waiting, f, link);
	s->waiting++;
	if (!event_pending(&h->out_event, EV_WRITE, NULL))
		flush(h);
	return RPC_PENDING;
}
