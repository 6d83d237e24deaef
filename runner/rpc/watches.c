/* SPDX-License-Identifier: ISC */
/*
 * fs/watch, fs/unwatch: up to WATCHES_MAX watches for each connection, by
 * inotify(7) (doc/protocol.md section 17). Events that the client does not read
 * in time wait in the kernel, which says when it had to drop some.
 */
#include "base.h"
#include "methods.h"

#include <event2/event.h>
#include <sys/inotify.h>

#include "files.h"
#include "loop.h"
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
	json_key_path(w, "path", path ? path : one->path);
	json_end(w, '}');
}

static struct json_writer
begin_changes(struct session *s, uint64_t id)
{
	struct json_writer w = channel_begin(&s->client.channel);

	rpc_begin_notification(&w, "fs/changed");
	json_begin(&w, '{');
	json_key_u64(&w, "watchId", id);
	json_key_begin(&w, "changes", '[');
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
		    "'%.*s' is invalid on 'linux'%s", (int)p->path.uri.len,
		    p->path.uri.ptr, path_uri_hint(&p->path));
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
		slow_paths_add(&r->slow, slow_paths_now(), p->path.path);
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

/* --- a missing path ----------------------------------------------------- */

/*
 * fs/watchMissing: one watch for each connection (doc/protocol.md
 * section 13.4).
 */

/* Events that change the names in a directory, or its own name. */
#define DIRECTORY_EVENTS                                                       \
	(IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM |                 \
	    IN_DELETE_SELF | IN_MOVE_SELF)
#define FILE_EVENTS (IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF)

#define MISSING_BYTES (16u << 10)

/* A name in a directory; its appearance or removal is reported. */
struct watch_name {
	int wd;
	char *name; /* owned; NULL: any event of the object itself */
};

struct watch {
	struct session *session;
	struct event event;
	int fd;
	uint64_t id;
	struct watch_name *names; /* owned */
	size_t count, cap;
};

void
watch_stop(struct session *s)
{
	struct watch *w = s->watch;

	if (w == NULL)
		return;
	s->watch = NULL;
	event_del(&w->event);
	close(w->fd);
	while (w->count > 0)
		free(w->names[--w->count].name);
	free(w->names);
	free(w);
}

static void
add_name(struct watch *w, int wd, const char *name, size_t len)
{
	if (w->count == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 16;
		w->names = xreallocarray(w->names, w->cap, sizeof(*w->names));
	}
	w->names[w->count++] = (struct watch_name){ .wd = wd,
		.name = name ? xstrndup(name, len) : NULL };
}

/*
 * Returns 0 or -errno. A link is never followed, because its target could
 * change unseen.
 */
static int
watch_name(struct watch *w, const char *directory, const char *name, size_t len)
{
	int wd = inotify_add_watch(
	    w->fd, directory, DIRECTORY_EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW);

	if (wd < 0)
		return -errno;
	add_name(w, wd, name, len);
	return 0;
}

/*
 * Watches each existing directory of the path for the next component. Returns 1
 * if the whole path exists, 0 if the rest is missing, or -errno. An upper
 * directory that may not be read is skipped; what is in it can still be
 * watched.
 */
static int
watch_path(struct watch *w, const char *path)
{
	_cleanup_free_ char *directory = xstrdup(path);
	const char *name = path + 1;

	for (;;) {
		size_t len = strcspn(name, "/");
		struct stat st;
		int err;

		directory[name > path + 1 ? name - path - 1 : 1] = '\0';
		err = watch_name(w, directory, name, len);
		if (err < 0 && err != -EACCES)
			return err;
		memcpy(directory, path, (size_t)(name - path) + len);
		directory[(size_t)(name - path) + len] = '\0';
		if (lstat(directory, &st) < 0)
			return errno == ENOENT ? err : -errno;
		if (name[len] == '\0')
			return 1;
		if (!S_ISDIR(st.st_mode))
			return -ENOTDIR;
		name += len + 1;
	}
}

/* The file is watched too, because it may be rewritten in place. */
static int
watch_present(struct watch *w, const char *path)
{
	struct stat st;
	int wd, err = watch_path(w, path);

	if (err != 1)
		return err < 0 ? err : -ENOENT;
	if (lstat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return 0;
	wd = inotify_add_watch(w->fd, path, FILE_EVENTS | IN_DONT_FOLLOW);
	if (wd < 0)
		return -errno;
	add_name(w, wd, NULL, 0);
	return 0;
}

static bool
is_news(const struct watch *w, const struct inotify_event *e)
{
	if (e->mask & (IN_Q_OVERFLOW | IN_DELETE_SELF | IN_MOVE_SELF))
		return true;
	for (size_t i = 0; i < w->count; i++)
		if (w->names[i].wd == e->wd &&
		    (w->names[i].name == NULL ||
			(e->len > 0 && !strcmp(w->names[i].name, e->name))))
			return true;
	return false;
}

static void
tell_missing(struct session *s, uint64_t id)
{
	struct json_writer w = channel_begin(&s->client.channel);

	rpc_begin_notification(&w, "fs/missingChanged");
	json_begin(&w, '{');
	json_key_u64(&w, "watchId", id);
	json_end(&w, '}');
	rpc_end_notification(&w);
	channel_send(&s->client.channel);
}

static void
missing_cb(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;
	struct session *s = w->session;
	uint64_t id = w->id;
	_Alignas(struct inotify_event) char events[MISSING_BYTES];
	ssize_t n = read(fd, events, sizeof(events));
	bool news = false;

	for (ssize_t at = 0; at < n && !news;) {
		const struct inotify_event *e =
		    (const void *)(events + (size_t)at);

		news = is_news(w, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	if (!news)
		return;
	watch_stop(s);
	tell_missing(s, id);
}

static struct watch *
watch_new(struct session *s, uint64_t id)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct watch *w;

	if (fd < 0)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->session = s;
	w->id = id;
	w->fd = fd;
	event_assign(
	    &w->event, s->base, fd, EV_READ | EV_PERSIST, missing_cb, w);
	loop_add(&w->event, NULL);
	return w;
}

/* All paths or none: the answer must not promise a watch that misses one. */
static bool
watch_all(struct watch *w, const struct watch_params *p)
{
	for (size_t i = 0; i < p->missing_count; i++)
		if (p->missing[i].foreign ||
		    watch_path(w, p->missing[i].path) != 0)
			return false;
	return !p->has_present ||
	       (!p->present.foreign && watch_present(w, p->present.path) == 0);
}

/* Paths that may make the loop wait are opened elsewhere first. */
static void
add_slow(struct request *r, const struct watch_params *p)
{
	const struct slow_mounts *m = slow_paths_now();

	if (!sandboxes_permit_none(&r->session->sandbox) ||
	    p->missing_count > WATCH_PATHS_MAX)
		return;
	for (size_t i = 0; m != NULL && i < p->missing_count; i++)
		if (!p->missing[i].foreign)
			slow_paths_add(&r->slow, m, p->missing[i].path);
	if (m != NULL && p->has_present && !p->present.foreign)
		slow_paths_add(&r->slow, m, p->present.path);
}

int
method_fs_watch_missing(struct request *r, const union method_params *params)
{
	const struct watch_params *p = &params->watch;
	struct session *s = r->session;
	struct json_writer w;

	if (!r->opened)
		add_slow(r, p);
	if (r->slow != NULL)
		return RPC_PENDING;
	watch_stop(s);
	/*
	 * If a sandbox is required, nothing about the disk is told outside of
	 * it.
	 */
	if (sandboxes_permit_none(&s->sandbox) && p->missing_count > 0 &&
	    p->missing_count <= WATCH_PATHS_MAX)
		s->watch = watch_new(s, p->watch_id);
	if (s->watch != NULL && !watch_all(s->watch, p))
		watch_stop(s);
	w = reply_begin(r->channel, &r->id);
	json_key_bool(&w, "watching", s->watch != NULL);
	reply_end(r->channel, &w);
	return 0;
}
