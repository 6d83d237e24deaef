/* SPDX-License-Identifier: ISC */
/*
 * fs/watchMissing: one watch for each connection (doc/protocol.md
 * section 13.4).
 */
#include "watch.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop.h"
#include "methods.h"
#include "slow_paths.h"

/* Events that change the names in a directory, or its own name. */
#define DIRECTORY_EVENTS                                                       \
	(IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM |                 \
	    IN_DELETE_SELF | IN_MOVE_SELF)
#define FILE_EVENTS (IN_MODIFY | IN_DELETE_SELF | IN_MOVE_SELF)

#define EVENTS_BYTES (16u << 10)

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
tell(struct session *s, uint64_t id)
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
event_cb(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;
	struct session *s = w->session;
	uint64_t id = w->id;
	_Alignas(struct inotify_event) char events[EVENTS_BYTES];
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
	tell(s, id);
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
	event_assign(&w->event, s->base, fd, EV_READ | EV_PERSIST, event_cb, w);
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
	const struct slow_mounts *m = slow_paths_now(r->session->base);

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
