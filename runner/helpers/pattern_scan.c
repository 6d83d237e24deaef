/* SPDX-License-Identifier: ISC */
#include "pattern_scan.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base.h"
#include "control.h"
#include "loop.h"
#include "params.h"
#include "sandboxes.h"
#include "session.h"

/* A file system that does not answer must not block starts for ever. */
#define DEADLINE_SECONDS 60

/* Each match has a path, and there are at most RESOLVE_MATCHES_MAX. */
#define ANSWER_MAX_BYTES (RESOLVE_MATCHES_MAX * (size_t)PATH_MAX + (1u << 20))

/* --- memory that both sides have ---------------------------------------- */

static int
put_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	if (ftruncate(fd, 0) < 0)
		return -errno;
	for (size_t at = 0; at < len;) {
		ssize_t n = pwrite(fd, p + at, len - at, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += (size_t)n;
	}
	return 0;
}

/* Reads everything; the caller frees *data. */
static int
get_all(int fd, size_t max, char **data, size_t *len)
{
	off_t end = lseek(fd, 0, SEEK_END);
	_cleanup_free_ char *text = NULL;
	size_t at = 0;

	*data = NULL;
	*len = 0;
	if (end < 0 || (uint64_t)end > max)
		return end < 0 ? -errno : -EMSGSIZE;
	text = xmalloc((size_t)end + 1);
	while (at < (size_t)end) {
		ssize_t n = pread(fd, text + at, (size_t)end - at, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += (size_t)n;
	}
	*len = at;
	*data = text;
	text = NULL;
	return 0;
}

static void
put_matches(struct buf *b, const struct resolve_matches *m)
{
	buf_put_u32(b, (uint32_t)-m->err);
	buf_put_string(b, m->error, strlen(m->error));
	buf_put_u32(b, (uint32_t)m->count);
	for (size_t i = 0; i < m->count; i++) {
		buf_put_u8(b, m->items[i].unseen);
		buf_put_string(b, m->items[i].path, strlen(m->items[i].path));
	}
}

static void
get_matches(struct buf_reader *r, struct resolve_matches *m)
{
	_cleanup_free_ char *path = xmalloc(r->left + 1);
	size_t cap = r->left + 1;
	uint32_t count;

	m->err = -(int)buf_get_u32(r);
	buf_get_string(r, m->error, sizeof(m->error));
	count = buf_get_u32(r);
	for (uint32_t i = 0; i < count && !r->failed; i++) {
		bool unseen = buf_get_u8(r);

		buf_get_string(r, path, cap);
		if (!r->failed)
			resolve_matches_add(m, path);
		if (!r->failed)
			m->items[i].unseen = unseen;
	}
	if (buf_end(r) < 0)
		m->err = -EBADMSG;
}

/* --- the process -------------------------------------------------------- */

/* Decodes the request again; the runner decoded the same text before. */
static void
look(struct session *s, struct rpc_message *m, struct resolve_matches *found)
{
	_cleanup_free_ char **envp = NULL;
	struct sandbox_request wanted;
	union method_params p;

	*found = (struct resolve_matches){ .err = -EBADMSG };
	if (s->scan->user->wants(s, m, &p, &wanted, &envp) == 0)
		sandboxes_scan(&s->sandbox, &wanted, found);
}

static int
answer(struct session *s)
{
	struct resolve_matches found;
	struct rpc_message m;
	struct buf b;
	size_t len;
	char *text;
	int err = get_all(s->scan->memory, SIZE_MAX / 2, &text, &len);

	if (err < 0)
		return err;
	buf_init(&b, ANSWER_MAX_BYTES);
	if (rpc_parse(&m, text, len) == 0)
		look(s, &m, &found);
	else
		found = (struct resolve_matches){ .err = -EBADMSG };
	put_matches(&b, &found);
	err = b.failed ? -EMSGSIZE : put_all(s->scan->memory, b.data, b.len);
	resolve_matches_clear(&found);
	rpc_message_clear(&m);
	buf_clear(&b);
	free(text);
	return err;
}

/*
 * The scanning process. It has a copy of the runner's memory, but no
 * descriptors except its own.
 */
static void __attribute__((noreturn)) child(struct session *s, int fd)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "execd-patterns");
	reaper_reset_signals();
	if (dup2(s->scan->memory, CONTROL_FD + 1) < 0 ||
	    dup2(fd, CONTROL_FD) < 0)
		_exit(1);
	close_from(CONTROL_FD + 2);
	s->scan->memory = CONTROL_FD + 1;
	s->sandbox.known = NULL;
	while (read(CONTROL_FD, &byte, 1) == 1)
		if (answer(s) < 0 || write(CONTROL_FD, &byte, 1) != 1)
			break;
	_exit(0);
}

/* --- the runner's side -------------------------------------------------- */

static void
stop(struct pattern_scan *p)
{
	event_del(&p->deadline);
	p->asked_for = SCAN_FOR_NOBODY;
	if (p->fd < 0)
		return;
	event_del(&p->in_event);
	if (p->watch.pid > 0)
		kill(p->watch.pid, SIGKILL);
	reaper_remove(&p->watch);
	close(p->fd);
	close(p->memory);
	p->fd = p->memory = -1;
}

/* Continues the request with the result; an error refuses it. */
static void
finish(struct session *s, struct resolve_matches *found)
{
	enum scan_for who = s->scan->asked_for;

	s->scan->asked_for = SCAN_FOR_NOBODY;
	s->scan->user->answered(s, who, found);
	resolve_matches_clear(found);
	s->scan->user->next(s, who);
}

static void
fail(struct session *s, int err)
{
	struct resolve_matches none = { .err = err };
	enum scan_for who = s->scan->asked_for;

	stop(s->scan);
	if (who == SCAN_FOR_NOBODY)
		return;
	log_error(err, "sandbox: looking for what patterns match");
	s->scan->asked_for = who;
	finish(s, &none);
}

static void
take_answer(struct session *s)
{
	struct resolve_matches found = { 0 };
	struct buf_reader r;
	char *data;
	size_t len;
	int err = get_all(s->scan->memory, ANSWER_MAX_BYTES, &data, &len);

	if (err < 0) {
		found.err = err;
	} else {
		buf_reader_init(&r, data, len);
		get_matches(&r, &found);
		free(data);
		put_all(s->scan->memory, NULL, 0);
	}
	finish(s, &found);
}

static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	enum scan_for who = s->scan->asked_for;
	char byte;

	if (read(fd, &byte, 1) == 1 && who != SCAN_FOR_NOBODY) {
		event_del(&s->scan->deadline);
		take_answer(s);
		return;
	}
	fail(s, -EIO);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	fail(s, s->scan->err < 0 ? s->scan->err : -ETIMEDOUT);
}

void
pattern_scan_init(struct session *s, const struct pattern_scan_user *user)
{
	s->scan->user = user;
	s->scan->fd = s->scan->memory = -1;
	event_assign(&s->scan->deadline, s->base, -1, 0, deadline_cb, s);
}

static int
start(struct session *s)
{
	struct pattern_scan *p = s->scan;
	int pair[2], err;
	pid_t pid;

	p->memory = memfd_create("execd patterns", MFD_CLOEXEC);
	if (p->memory < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		err = -errno;
		close(p->memory);
		return err;
	}
	pid = fork();
	err = -errno;
	if (pid == 0)
		child(s, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		close(p->memory);
		return err;
	}
	p->fd = pair[0];
	reaper_add(&p->watch, pid, NULL);
	event_assign(
	    &p->in_event, s->base, p->fd, EV_READ | EV_PERSIST, in_cb, s);
	loop_add(&p->in_event, NULL);
	return 0;
}

void
pattern_scan_ask(
    struct session *s, enum scan_for who, const char *text, size_t len)
{
	struct pattern_scan *p = s->scan;

	if (p->asked_for != SCAN_FOR_NOBODY)
		return;
	p->err = p->fd < 0 ? start(s) : 0;
	p->asked_for = who;
	if (p->err == 0)
		p->err = put_all(p->memory, text, len);
	if (p->err == 0 && send(p->fd, "", 1, MSG_NOSIGNAL) != 1)
		p->err = -errno;
	/*
	 * If the process could not be asked, the request is refused in the next
	 * turn of the loop.
	 */
	loop_add_ms(&p->deadline, p->err < 0 ? 0 : DEADLINE_SECONDS * 1000);
}

void
pattern_scan_restart(struct session *s)
{
	fail(s, -ECANCELED);
}

void
pattern_scan_cancel(struct session *s)
{
	if (s->scan->asked_for != SCAN_FOR_NOBODY)
		stop(s->scan);
}
