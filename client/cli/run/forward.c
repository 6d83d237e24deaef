/* SPDX-License-Identifier: ISC */
/* Forwarded ports: listeners here, and the connections through them. */
#include "base.h"
#include "run.h"

#include <netinet/in.h>

#define PORTS_MAX  8
#define LINKS_MAX  32	      /* connections at once; others wait */
#define QUEUED_MAX (1u << 20) /* bytes for one; more pauses the client */
#define WRITES_MAX 8	      /* under way, of one connection */
#define READ_BYTES 32768
#define BACKLOG	   64

/* A port here. */
struct port {
	struct forward *forward;
	struct source source;
	uint16_t remote;
};

/* A connection through a port. */
struct link {
	TAILQ_ENTRY(link) entry; /* forward.links */
	struct forward *forward;
	struct execd_process *process;
	struct source in;
	struct output out; /* on a descriptor of its own */
	struct timer end;  /* frees it outside of its own callbacks */
	unsigned writes;   /* waiting for their answer */
	bool opened, in_ended, over, pauses;
};

struct forward {
	struct run *run;
	struct port ports[PORTS_MAX];
	size_t nports;
	TAILQ_HEAD(, link) links;
	unsigned nlinks;
};

static void update_ports(struct forward *f);

/* --- one connection ----------------------------------------------------- */

static void
set_pause(struct link *l, bool pause)
{
	if (l->pauses != pause)
		execctl_pause(l->forward->run->ctl, pause);
	l->pauses = pause;
}

static void
link_free(void *arg)
{
	struct link *l = arg;
	struct forward *f = l->forward;

	set_pause(l, false);
	execd_process_free(l->process);
	source_remove(f->run->ctl, &l->in);
	timer_remove(f->run->ctl, &l->end);
	output_clear(&l->out);
	close(l->out.fd);
	close(l->in.fd);
	TAILQ_REMOVE(&f->links, l, entry);
	f->nlinks--;
	free(l);
	update_ports(f);
}

static void
link_update(struct link *l)
{
	struct execctl *ctl = l->forward->run->ctl;
	bool more =
	    l->opened && !l->in_ended && !l->over && l->writes < WRITES_MAX;
	bool done = l->over && output_queued(&l->out) == 0;

	source_set(ctl, &l->in, l->in.fd, more ? POLLIN : 0);
	set_pause(l, output_queued(&l->out) > QUEUED_MAX);
	if ((done || l->out.failed < 0) && !l->end.added)
		timer_set(ctl, &l->end, 0);
}

static void
written(void *arg, const struct execd_answer *a)
{
	struct link *l = arg;

	l->writes--;
	if (a->code != 0 || !json_is(json_get(a->result, "status"), "accepted"))
		l->in_ended = true;
	link_update(l);
}

static void
on_ready(void *arg)
{
	struct link *l = arg;
	char data[READ_BYTES];
	ssize_t n = read(l->in.fd, data, sizeof(data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		l->writes++;
		execd_process_write(l->process, data, (size_t)n, written, l);
	} else {
		l->in_ended = true;
		execd_process_close_stdin(l->process);
	}
	link_update(l);
}

static void
on_changed(void *arg)
{
	struct link *l = arg;

	/* Nobody here reads any more. */
	if (l->out.failed < 0 && !l->over)
		execd_process_terminate(l->process, 0);
	link_update(l);
}

static void
on_started(void *arg, const char *sandbox_type)
{
	struct link *l = arg;

	(void)sandbox_type;
	l->opened = true;
	link_update(l);
}

static void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	struct link *l = arg;

	if (stream == EXECD_STDERR)
		execctl_say("forward: %.*s", (int)len, (const char *)data);
	else
		output_put(&l->out, data, len);
	link_update(l);
}

static void
on_closed(void *arg)
{
	struct link *l = arg;

	l->over = true;
	link_update(l);
}

static void
on_failed(void *arg, int code, const char *message)
{
	struct link *l = arg;

	(void)code;
	if (!l->over)
		execctl_say("forward: %s", message);
	on_closed(l);
}

static const struct execd_process_events events = {
	.started = on_started,
	.output = on_output,
	.closed = on_closed,
	.failed = on_failed,
};

static void
link_new(struct forward *f, int fd, int copy, uint16_t remote)
{
	struct link *l = xcalloc(1, sizeof(*l));
	struct execctl *ctl = f->run->ctl;
	int err;

	l->forward = f;
	l->in = (struct source){ .fd = fd, .ready = on_ready, .arg = l };
	l->end = (struct timer){ .fire = link_free, .arg = l };
	output_init(&l->out, ctl, copy, on_changed, l);
	TAILQ_INSERT_TAIL(&f->links, l, entry);
	f->nlinks++;
	err = execd_process_forward(ctl->client,
	    execd_process_id(f->run->process), remote, &events, l, &l->process);
	if (err < 0) {
		execctl_say("forward: %s", strerror(-err));
		l->over = true;
	}
	link_update(l);
}

/* --- the ports ---------------------------------------------------------- */

static void
on_connection(void *arg)
{
	struct port *p = arg;
	struct forward *f = p->forward;
	int fd = accept4(p->source.fd, NULL, NULL, SOCK_CLOEXEC), copy;

	if (fd < 0)
		return;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0) {
		execctl_say("forward: %s", strerror(errno));
		close(fd);
		return;
	}
	link_new(f, fd, copy, p->remote);
	update_ports(f);
}

static void
update_ports(struct forward *f)
{
	bool more = f->run->started && !f->run->done && f->nlinks < LINKS_MAX;

	for (size_t i = 0; i < f->nports; i++)
		source_set(f->run->ctl, &f->ports[i].source,
		    f->ports[i].source.fd, more ? POLLIN : 0);
}

/* The far end is always loopback. Who is used to ssh writes its name all the
 * same. Returns what follows that name. */
static const char *
skip_loopback(const char *text)
{
	static const char *const names[] = { "localhost:", "127.0.0.1:" };

	for (size_t i = 0; i < nitems(names); i++)
		if (strncmp(text, names[i], strlen(names[i])) == 0)
			return text + strlen(names[i]);
	return text;
}

/* Reads "PORT" or "PORT:[localhost:]PORT", first the one here. */
static bool
read_ports(const char *text, unsigned *here, unsigned *there)
{
	char *end;

	*here = *there = (unsigned)strtoul(text, &end, 10);
	if (end == text || *text == '-' || (*end != ':' && *end != '\0'))
		return false;
	if (*end == ':') {
		text = skip_loopback(end + 1);
		*there = (unsigned)strtoul(text, &end, 10);
		if (end == text || *text == '-' || *end != '\0')
			return false;
	}
	return *here <= UINT16_MAX && *there >= 1 && *there <= UINT16_MAX;
}

static int
listen_here(unsigned *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)*port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int yes = 1;
	socklen_t len = sizeof(a);
	_cleanup_close_ int fd =
	    socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
	    bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	*port = ntohs(a.sin_port);
	return steal_fd(&fd);
}

static int
add_port(struct forward *f, const char *text)
{
	struct execctl *ctl = f->run->ctl;
	struct port *p = &f->ports[f->nports];
	unsigned here, there;
	bool any;
	int fd;

	if (f->nports == PORTS_MAX)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--forward: at most %d ports", PORTS_MAX);
	if (!read_ports(text, &here, &there))
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "--forward: `%s' is not PORT, PORT:PORT or "
		    "PORT:localhost:PORT, and no other host is reached",
		    text);
	any = here == 0;
	fd = listen_here(&here);
	if (fd < 0)
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "--forward: port %u: %s", here, strerror(-fd));
	*p = (struct port){ .forward = f,
		.source = { .fd = fd, .ready = on_connection, .arg = p },
		.remote = (uint16_t)there };
	f->nports++;
	if (any)
		execctl_say("127.0.0.1:%u leads to port %u", here, there);
	else
		execctl_tell(ctl, "127.0.0.1:%u leads to port %u", here, there);
	return 0;
}

int
forward_begin(struct run *r)
{
	const struct parsed *parsed = r->ctl->parsed;
	const char *text;
	int code = 0;

	if (option(parsed, "forward") == NULL)
		return 0;
	if (!execd_client_can(r->ctl->client, "processForward"))
		return execctl_fail(r->ctl, EXIT_CTL_REFUSED,
		    "--forward needs a server that announces processForward");
	r->forward = xcalloc(1, sizeof(*r->forward));
	r->forward->run = r;
	TAILQ_INIT(&r->forward->links);
	for (size_t i = 0;
	     code == 0 && (text = option_nth(parsed, "forward", i)) != NULL;
	     i++)
		code = add_port(r->forward, text);
	return code;
}

void
forward_update(struct run *r)
{
	if (r->forward != NULL)
		update_ports(r->forward);
}

void
forward_end(struct run *r)
{
	struct forward *f = r->forward;

	if (f == NULL)
		return;
	while (!TAILQ_EMPTY(&f->links))
		link_free(TAILQ_FIRST(&f->links));
	for (size_t i = 0; i < f->nports; i++) {
		source_remove(r->ctl, &f->ports[i].source);
		close(f->ports[i].source.fd);
	}
	free(f);
	r->forward = NULL;
}
