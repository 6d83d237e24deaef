/* SPDX-License-Identifier: ISC */
/*
 * fs/watch, fs/unwatch: up to WATCHES_MAX watches for each connection, by
 * inotify(7) (doc/protocol.md section 17). Events that the client does not read
 * in time wait in the kernel, which says when it had to drop some.
 */
#include "watches.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "files.h"
#include "loop.h"
#include "methods.h"
#include "slow_paths.h"

#define WATCHES_MAX 128

#define EVENTS                                                                 \
	(IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_MODIFY |     \
	    IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK)

/* One read, and so the most in one notification: a few dozen names. */
#define EVENTS_BYTES (4u << 10)

struct fs_watch {
	TAILQ_ENTRY(fs_watch) link; /* watches.all */
	uint64_t id;
	int wd;
	char path[];
};

struct watches {
	struct session *session;
	struct event event;
	int fd;
	bool reading;
	unsigned count;
	TAILQ_HEAD(, fs_watch) all;
};

static void
remove_watch(struct watches *w, struct fs_watch *one)
{
	/* Fails if the kernel has removed the watch already. */
	inotify_rm_watch(w->fd, one->wd);
	TAILQ_REMOVE(&w->all, one, link);
	w->count--;
	free(one);
}

void
watches_stop(struct session *s)
{
	struct watches *w = s->watches;

	if (w == NULL)
		return;
	s->watches = NULL;
	while (!TAILQ_EMPTY(&w->all))
		remove_watch(w, TAILQ_FIRST(&w->all));
	event_del(&w->event);
	close(w->fd);
	free(w);
}

void
watches_resume(struct session *s)
{
	if (s->watches != NULL)
		loop_watch(&s->watches->event, &s->watches->reading, true);
}

static struct fs_watch *
find_by_wd(struct watches *w, int wd)
{
	struct fs_watch *one;

	TAILQ_FOREACH (one, &w->all, link)
		if (one->wd == wd)
			return one;
	return NULL;
}

static struct fs_watch *
find_by_id(struct watches *w, uint64_t id)
{
	struct fs_watch *one;

	TAILQ_FOREACH (one, &w->all, link)
		if (one->id == id)
			return one;
	return NULL;
}

/* --- what is told ------------------------------------------------------- */

static const char *
kind_name(uint32_t mask)
{
	if (mask & (IN_CREATE | IN_MOVED_TO))
		return "created";
	if (mask & (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF |
		       IN_UNMOUNT | IN_IGNORED))
		return "removed";
	return mask & IN_MODIFY ? "modified" : "attributes";
}

static void
write_change(struct json_writer *w, const struct fs_watch *one,
    const struct inotify_event *e)
{
	_cleanup_free_ char *path = NULL;

	if (e->len > 0)
		path = xasprintf(
		    "%s/%s", strcmp(one->path, "/") ? one->path : "", e->name);
	json_begin(w, '{');
	json_key_cstring(w, "kind", kind_name(e->mask));
	json_key(w, "path");
	json_path(w, path ? path : one->path);
	json_end(w, '}');
}

static struct json_writer
begin_changes(struct session *s, uint64_t id)
{
	struct json_writer w = channel_begin(&s->client.channel);

	rpc_begin_notification(&w, "fs/changed");
	json_begin(&w, '{');
	json_key_u64(&w, "watchId", id);
	json_key(&w, "changes");
	json_begin(&w, '[');
	return w;
}

static void
end_changes(struct session *s, struct json_writer *w, bool overflow, bool ended)
{
	json_end(w, ']');
	json_key_bool(w, "overflow", overflow);
	json_key_bool(w, "ended", ended);
	json_end(w, '}');
	rpc_end_notification(w);
	channel_send(&s->client.channel);
}

static const struct inotify_event *
event_at(const char *events, size_t at)
{
	return (const void *)(events + at);
}

static size_t
event_size(const struct inotify_event *e)
{
	return sizeof(*e) + e->len;
}

/* The kernel dropped events, but does not say of which watch. */
static void
tell_overflow(struct watches *w)
{
	struct fs_watch *one;

	TAILQ_FOREACH (one, &w->all, link) {
		struct json_writer j = begin_changes(w->session, one->id);

		end_changes(w->session, &j, true, false);
	}
}

/*
 * Reports the events of one watch, from `at` up to the first event of another
 * watch. Ends the watch if its path names another object now. Returns where it
 * stopped.
 */
static size_t
tell_run(struct watches *w, const char *events, size_t at, size_t end)
{
	const uint32_t over =
	    IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED;
	const struct inotify_event *e = event_at(events, at);
	struct fs_watch *one = find_by_wd(w, e->wd);
	struct json_writer j;
	bool ended = false;
	int wd = e->wd;

	if (one == NULL)
		return at + event_size(e); /* the watch has ended already */
	j = begin_changes(w->session, one->id);
	while (at < end && !ended) {
		e = event_at(events, at);
		if (e->wd != wd)
			break;
		write_change(&j, one, e);
		ended = e->mask & over;
		at += event_size(e);
	}
	end_changes(w->session, &j, false, ended);
	if (ended)
		remove_watch(w, one);
	return at;
}

static void
event_cb(evutil_socket_t fd, short what, void *arg)
{
	struct watches *w = arg;
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
	size_t at = 0, end;
	ssize_t n;

	if (channel_congested(&w->session->client.channel)) {
		loop_watch(&w->event, &w->reading, false);
		return;
	}
	n = read(fd, events, sizeof(events));
	end = n > 0 ? (size_t)n : 0;
	while (at < end) {
		const struct inotify_event *e = event_at(events, at);

		if (e->mask & IN_Q_OVERFLOW) {
			tell_overflow(w);
			at += event_size(e);
		} else {
			at = tell_run(w, events, at, end);
		}
	}
}

/* --- methods ------------------------------------------------------------ */

static struct watches *
watches_of(struct session *s)
{
	struct watches *w = s->watches;
	int fd;

	if (w != NULL)
		return w;
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (fd < 0)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->session = s;
	w->fd = fd;
	TAILQ_INIT(&w->all);
	event_assign(&w->event, s->base, fd, EV_READ | EV_PERSIST, event_cb, w);
	loop_watch(&w->event, &w->reading, true);
	s->watches = w;
	return w;
}

/* Answers and returns false if the path may not be watched. */
static bool
check_watch(struct request *r, struct watches *w, const struct fs_params *p)
{
	if (p->has_sandbox && !p->sandbox.files_unrestricted)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS, "%s",
		    SANDBOX_UNENFORCEABLE ": fs/watch has no sandbox");
	else if (p->path.foreign)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "'%.*s' is invalid on 'linux'", (int)p->path.uri.len,
		    p->path.uri.ptr);
	else if (find_by_id(w, p->watch_id) != NULL)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "watch %" PRIu64 " already exists", p->watch_id);
	else if (w->count >= WATCHES_MAX)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "at most %d watches may be open per connection",
		    WATCHES_MAX);
	else
		return true;
	return false;
}

int
method_fs_watch(struct request *r, const union method_params *params)
{
	const struct fs_params *p = &params->fs;
	struct watches *w = watches_of(r->session);
	struct fs_watch *one;
	size_t len;
	int wd;

	if (w == NULL)
		return reply_file_error(r, -errno);
	if (!sandboxes_permit_none(&r->session->sandbox))
		return reply_error(r->channel, &r->id, RPC_INVALID_PARAMS, "%s",
		    SANDBOX_UNENFORCEABLE ": fs/watch has no sandbox, and "
					  "unsandboxed requests are not "
					  "permitted");
	if (!check_watch(r, w, p))
		return 0;
	/* The kernel looks the path up, and would make the loop wait. */
	if (!r->opened)
		slow_paths_add(
		    &r->slow, slow_paths_now(r->session->base), p->path.path);
	if (r->slow != NULL)
		return RPC_PENDING;
	wd = inotify_add_watch(w->fd, p->path.path, EVENTS);
	if (wd < 0)
		return reply_file_error(r, -errno);
	one = find_by_wd(w, wd);
	if (one != NULL)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "watch %" PRIu64 " watches the same already", one->id);
	len = strlen(p->path.path) + 1;
	one = xmalloc(sizeof(*one) + len);
	one->id = p->watch_id;
	one->wd = wd;
	memcpy(one->path, p->path.path, len);
	TAILQ_INSERT_TAIL(&w->all, one, link);
	w->count++;
	return reply_empty(r);
}

int
method_fs_unwatch(struct request *r, const union method_params *params)
{
	struct watches *w = r->session->watches;
	struct fs_watch *one = w ? find_by_id(w, params->fs.watch_id) : NULL;

	if (one != NULL)
		remove_watch(w, one);
	return reply_empty(r);
}
