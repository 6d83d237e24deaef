/* SPDX-License-Identifier: ISC */
/* Starts that wait: for what their patterns match, or for a file system. */
#include "base.h"
#include "methods.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "helper.h"
#include "loop.h"
#include "pattern_scan.h"
#include "process_tree.h"
#include "session.h"
#include "slow_paths.h"

struct held_start {
	STAILQ_ENTRY(held_start) link; /* start_queue.held */
	struct rpc_id id;
	bool opened, captured; /* as in the request */
	char *process_id;      /* owned; NULL: it names none */
	size_t process_len, len;
	char text[];
};

void
start_queue_init(struct start_queue *q)
{
	STAILQ_INIT(&q->held);
	q->count = 0;
}

static bool
starts_process(const struct rpc_method *method)
{
	return method->method == method_process_start ||
	       method->method == method_command_exec;
}

/* Returns the process id that the request names, or an empty slice. It points
 * into the message. */
static struct slice
start_queue_process_of(const struct rpc_message *m)
{
	const struct json_value *v = json_get(m->params, "processId");

	return v != NULL && v->type == JSON_STRING ? v->text
						   : (struct slice){ "", 0 };
}

bool
start_queue_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m)
{
	struct slice id = start_queue_process_of(m);
	struct held_start *h;

	if (STAILQ_EMPTY(&s->starting->held) || r->client != &s->client ||
	    method->family != FAMILY_EXEC)
		return false;
	if (starts_process(method))
		return true;
	STAILQ_FOREACH (h, &s->starting->held, link)
		if (h->process_id != NULL &&
		    slice_equal(
			id, (struct slice){ h->process_id, h->process_len }))
			return true;
	return false;
}

static void
free_queued(struct held_start *h)
{
	rpc_id_clear(&h->id);
	free(h->process_id);
	free(h);
}

int
start_queue_hold(struct request *r, const struct rpc_message *m,
    const char *text, size_t len)
{
	struct start_queue *q = r->session->starting;
	struct slice id = start_queue_process_of(m);
	struct held_start *h;

	if (q->count == REQUESTS_WAITING_MAX)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "at most %d requests may wait for a start",
		    REQUESTS_WAITING_MAX);
	h = xcalloc(1, sizeof(*h) + len);
	h->id = r->id;
	r->id = (struct rpc_id){ 0 };
	h->opened = r->opened;
	h->captured = r->captured;
	/* Also one that follows its start, which may go on before it: the
	 * next one must not overtake it then. */
	if (id.len > 0) {
		h->process_id = xstrndup(id.ptr, id.len);
		h->process_len = id.len;
	}
	h->len = len;
	memcpy(h->text, text, len);
	STAILQ_INSERT_TAIL(&q->held, h, link);
	q->count++;
	r->session->held_bytes += len;
	r->session->client.waiting++;
	if (q->count == 1)
		pattern_scan_ask(r->session, SCAN_FOR_START, h->text, len);
	helper_pause_client(r->session);
	return RPC_PENDING;
}

/*
 * Returns true if the first request is answered or waits for something else;
 * then the next one is first. Returns false if it asked for a scan of its
 * patterns.
 */
static bool
go_on(struct session *s, const struct resolve_matches *found)
{
	struct start_queue *q = s->starting;
	struct held_start *h = STAILQ_FIRST(&q->held);
	struct request r = { .channel = &s->client.channel,
		.session = s,
		.client = &s->client,
		.id = h->id,
		.opened = h->opened,
		.captured = h->captured };

	/* It is removed first, so that it does not have to wait for itself. */
	STAILQ_REMOVE_HEAD(&q->held, link);
	h->id = (struct rpc_id){ 0 };
	s->sandbox.known = found;
	methods_repeat(&r, h->text, h->len);
	s->sandbox.known = NULL;
	if (r.unscanned) {
		h->id = r.id;
		STAILQ_INSERT_HEAD(&q->held, h, link);
		pattern_scan_ask(s, SCAN_FOR_START, h->text, h->len);
		return false;
	}
	rpc_id_clear(&r.id);
	q->count--;
	s->held_bytes -= h->len;
	s->client.waiting--;
	free_queued(h);
	return true;
}

void
start_queue_resume(struct session *s, const struct resolve_matches *found)
{
	while (!STAILQ_EMPTY(&s->starting->held) && go_on(s, found))
		found = NULL;
	helper_pause_client(s);
}

void
start_queue_clear(struct session *s)
{
	struct start_queue *q = s->starting;
	struct held_start *h;

	while ((h = STAILQ_FIRST(&q->held)) != NULL) {
		STAILQ_REMOVE_HEAD(&q->held, link);
		s->held_bytes -= h->len;
		free_queued(h);
	}
	start_queue_init(q);
}

/* --- starts that wait for a file system, or for a login shell ----------- */

/* Of a probe, where it tells how far it is. */
#define PROGRESS_FD 3

/* Scripts whose interpreter is a script, as in the kernel. */
#define INTERPRETERS_MAX 5

/* In place of the next path. */
#define ALL_OPENED UINT32_MAX

/* One that ended, or was never started, has no pid. */
static struct reaper_watch probes[SLOW_START_PROBES_MAX];

/* What a request acts on. The id is empty if it is neither, or not named. */
struct object {
	bool file;  /* an open file; else a process */
	bool start; /* a process that begins with the request */
	struct slice id;
};

struct held {
	TAILQ_ENTRY(held) link; /* held_list */
	struct session *session;
	struct rpc_id id;
	struct spool *spool;		/* owned; NULL: none */
	struct object object;		/* its id is owned */
	char **paths;			/* owned; NULL: it waits for no path */
	const struct snapshot *capture; /* NULL: it waits for no shell */
	bool follows;		    /* it waits for neither, but for another */
	bool opened, captured;	    /* what is so when it goes on */
	struct reaper_watch *probe; /* NULL: it waits for a free one */
	int fd;			    /* from the probe */
	uint32_t at;		    /* which path the probe opens */
	struct event in_event, deadline;
	size_t len;
	char text[];
};
static TAILQ_HEAD(held_list, held) all = TAILQ_HEAD_INITIALIZER(all);
static unsigned count;

static void start_probes(void);

/* --- the process -------------------------------------------------------- */

/* Does with the path what the start will do. A failure does not matter here,
 * because the start fails in the same way. */
static void
open_path(const char *path)
{
	char interpreter[PATH_MAX];
	struct stat st;

	for (int i = 0; i < INTERPRETERS_MAX && stat(path, &st) == 0; i++) {
		if (S_ISDIR(st.st_mode)) {
			if (chdir(path) == 0)
				close(open(".", O_PATH | O_CLOEXEC));
			return;
		}
		if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0 ||
		    !slow_paths_interpreter(
			path, interpreter, sizeof(interpreter)))
			return;
		path = interpreter;
	}
}

static void
tell(uint32_t at)
{
	if (write(PROGRESS_FD, &at, sizeof(at)) != sizeof(at))
		_exit(1);
}

/* On a copy of the runner's memory, and with nothing else of it. */
static void __attribute__((noreturn)) child(char *const *paths, int fd)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "execd-paths");
	reaper_reset_signals();
	if (dup2(fd, PROGRESS_FD) < 0)
		_exit(1);
	close_from(PROGRESS_FD + 1);
	for (uint32_t i = 0; paths[i] != NULL; i++) {
		tell(i);
		open_path(paths[i]);
	}
	tell(ALL_OPENED);
	_exit(0);
}

/* --- what is opened for a sandbox --------------------------------------- */

/* A name of the operator's may begin with "~" and have a pattern in it. */
static void
add_operators(char ***paths, const struct slow_mounts *m,
    const char *const *names, const char *home)
{
	for (; names != NULL && *names != NULL; names++) {
		bool at_home = (*names)[0] == '~';
		_cleanup_free_ char *path = xasprintf(
		    "%s%s", at_home ? home : "", *names + (at_home ? 1 : 0));
		size_t pattern = strcspn(path, "*?[{");

		if (path[pattern] != '\0') {
			path[pattern] = '\0';
			path[strrchr(path, '/') ? strrchr(path, '/') - path
						: 0] = '\0';
		}
		slow_paths_add(paths, m, path);
	}
}

void
slow_start_add_policy(char ***paths, const struct slow_mounts *m,
    const struct ceiling *ceiling, const struct sandbox_request *wanted)
{
	const struct sandbox_context *c = wanted->asked;
	const char **const operators[] = { ceiling->workspace_roots,
		ceiling->writable_roots, ceiling->deny_read, ceiling->hide };

	if (wanted->tmpdir != NULL)
		slow_paths_add(paths, m, wanted->tmpdir);
	for (size_t i = 0; c != NULL && i < c->nroots; i++)
		if (!c->roots[i].foreign)
			slow_paths_add(paths, m, c->roots[i].path);
	if (c != NULL && c->has_cwd && !c->cwd.foreign)
		slow_paths_add(paths, m, c->cwd.path);
	for (size_t i = 0; c != NULL && i < c->nentries; i++)
		if (c->entries[i].kind == SANDBOX_PATH &&
		    !c->entries[i].path.foreign)
			slow_paths_add(paths, m, c->entries[i].path.path);
	for (size_t i = 0; i < nitems(operators); i++)
		add_operators(paths, m, operators[i], ceiling->home);
}

/* --- who waits ---------------------------------------------------------- */

static struct object
object_of(const struct rpc_method *method, const struct rpc_message *m)
{
	bool file = method->method == NULL &&
		    (method->use == FILE_OPENS || method->use == FILE_HANDLE ||
			method->use == FILE_CLOSES);
	const struct json_value *v = json_get(m->params, "handleId");

	if (!file)
		return (struct object){ false, starts_process(method),
			method->family == FAMILY_EXEC
			    ? start_queue_process_of(m)
			    : (struct slice){ "", 0 } };
	return (struct object){ true, false,
		v != NULL && v->type == JSON_STRING ? v->text
						    : (struct slice){ "", 0 } };
}

static bool
is_same(const struct object *a, const struct object *b)
{
	return a->file == b->file && a->id.len > 0 && slice_equal(a->id, b->id);
}

bool
slow_start_is_before(const struct session *s, const struct request *r,
    const struct rpc_method *method, const struct rpc_message *m)
{
	struct object object;
	struct held *h;

	if (TAILQ_EMPTY(&all) || r->client != &s->client)
		return false;
	object = object_of(method, m);
	TAILQ_FOREACH (h, &all, link)
		if (is_same(&object, &h->object))
			return true;
	return false;
}

/* The probe goes on without it: what waits in the kernel stays. */
static void
forget_probe(struct held *h)
{
	if (h->probe == NULL)
		return;
	event_del(&h->in_event);
	close(h->fd);
	if (h->probe->pid > 0)
		kill(h->probe->pid, SIGKILL);
	h->probe = NULL;
}

static void
take_out(struct held *h)
{
	struct session *s = h->session;

	TAILQ_REMOVE(&all, h, link);
	forget_probe(h);
	if (h->paths != NULL)
		event_del(&h->deadline);
	count--;
	s->held_bytes -= h->len;
	s->client.waiting--;
}

static void
free_held(struct held *h)
{
	rpc_id_clear(&h->id);
	spool_free(h->spool);
	slow_paths_free(h->paths);
	free((char *)(uintptr_t)h->object.id.ptr);
	free(h);
}

/* As if the request came now. */
static void
repeat(struct held *h)
{
	struct request r = { .channel = &h->session->client.channel,
		.session = h->session,
		.client = &h->session->client,
		.id = h->id,
		.spool = h->spool,
		.opened = h->opened,
		.captured = h->captured };

	h->id = (struct rpc_id){ 0 };
	h->spool = NULL;
	methods_resume(&r, h->text, h->len);
	rpc_id_clear(&r.id);
	spool_free(r.spool);
}

/* A copy, since they may have to wait for another start of that name. */
static void
take_followers(const struct object *object, struct held_list *followers)
{
	struct held *h, *next;

	TAILQ_INIT(followers);
	TAILQ_FOREACH_SAFE (h, &all, link, next)
		if (h->follows && is_same(object, &h->object)) {
			take_out(h);
			TAILQ_INSERT_TAIL(followers, h, link);
		}
}

/* Carries it out, or refuses it with the text; then those behind it go on. */
static void
finish(struct held *h, const char *error)
{
	struct session *s = h->session;
	struct held_list followers;
	struct held *f;

	take_out(h);
	take_followers(&h->object, &followers);
	if (error != NULL)
		reply_error_kind(&s->client.channel, &h->id, RPC_INTERNAL,
		    h->object.start ? KIND_FAILED : NULL, "%s", error);
	else
		repeat(h);
	free_held(h);
	while ((f = TAILQ_FIRST(&followers)) != NULL) {
		TAILQ_REMOVE(&followers, f, link);
		if (channel_is_open(&s->client.channel))
			repeat(f);
		free_held(f);
	}
	helper_pause_client(s);
	start_probes();
}

/* --- the runner's side of a probe --------------------------------------- */

/* A probe that somebody killed has not said that all paths are opened. */
static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct held *h = arg;
	uint32_t at;
	ssize_t n = read(fd, &at, sizeof(at));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(at))
		finish(h,
		    "the process that opens the paths of this request ended");
	else if (at == ALL_OPENED)
		finish(h, NULL);
	else
		h->at = at;
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct held *h = arg;
	_cleanup_free_ char *error = NULL;

	if (h->probe != NULL)
		error = xasprintf("`%s`: its file system did not answer within "
				  "%d s (os error %d)",
		    h->paths[h->at], SLOW_START_SECONDS, ETIMEDOUT);
	else
		error = xasprintf(
		    "`%s` was not opened within %d s: %d earlier requests "
		    "wait for file systems that do not answer (os error %d)",
		    h->paths[0], SLOW_START_SECONDS, SLOW_START_PROBES_MAX,
		    ETIMEDOUT);
	log_warn(
	    0, "a file system did not answer within %d s", SLOW_START_SECONDS);
	finish(h, error);
}

static void
ended(struct reaper_watch *w, int wait_status, const struct rusage *usage)
{
	start_probes();
}

/* 0, or -errno. */
static int
start_probe(struct held *h, struct reaper_watch *p)
{
	int fds[2], err;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	err = -errno;
	if (pid == 0)
		child(h->paths, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err;
	}
	h->probe = p;
	h->fd = fds[0];
	reaper_add(p, pid, ended);
	event_assign(&h->in_event, h->session->base, h->fd,
	    EV_READ | EV_PERSIST, in_cb, h);
	loop_add(&h->in_event, NULL);
	return 0;
}

static struct reaper_watch *
free_probe(void)
{
	for (size_t i = 0; i < nitems(probes); i++)
		if (probes[i].pid <= 0)
			return &probes[i];
	return NULL;
}

/* A probe that cannot be started is tried again when another one has ended. */
static void
start_probes(void)
{
	struct reaper_watch *p;
	struct held *h;
	int err;

	TAILQ_FOREACH (h, &all, link) {
		if (h->paths == NULL || h->probe != NULL)
			continue;
		p = free_probe();
		err = p != NULL ? start_probe(h, p) : 0;
		if (err < 0)
			log_warn(err, "opening the paths of a start");
		if (p == NULL || err < 0)
			return;
	}
}

int
slow_start_hold(struct request *r, const struct rpc_method *method,
    const struct rpc_message *m, const char *text, size_t len)
{
	struct object object = object_of(method, m);
	struct held *h;

	if (count == REQUESTS_WAITING_MAX) {
		slow_paths_free(r->slow);
		r->slow = NULL;
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "at most %d requests may wait for a start",
		    REQUESTS_WAITING_MAX);
	}
	h = xcalloc(1, sizeof(*h) + len);
	h->session = r->session;
	h->id = r->id;
	r->id = (struct rpc_id){ 0 };
	h->spool = r->spool;
	r->spool = NULL;
	h->paths = r->slow;
	r->slow = NULL;
	h->capture = r->capture;
	h->follows = h->paths == NULL && h->capture == NULL;
	h->opened = r->opened || h->paths != NULL;
	h->captured = r->captured || h->capture != NULL;
	h->object = object;
	h->object.id.ptr = xstrndup(object.id.ptr, object.id.len);
	h->len = len;
	memcpy(h->text, text, len);
	TAILQ_INSERT_TAIL(&all, h, link);
	count++;
	r->session->held_bytes += len;
	r->session->client.waiting++;
	if (h->paths != NULL) {
		event_assign(
		    &h->deadline, h->session->base, -1, 0, deadline_cb, h);
		loop_add_ms(&h->deadline, SLOW_START_SECONDS * 1000);
		start_probes();
	}
	helper_pause_client(r->session);
	return RPC_PENDING;
}

/* Each waits once: what goes on here waits for no capture any more. */
void
slow_start_captured(struct session *s, const struct snapshot *n)
{
	struct held *h;

	do {
		TAILQ_FOREACH (h, &all, link)
			if (h->capture == n)
				break;
		if (h != NULL)
			finish(h, NULL);
	} while (h != NULL);
}

void
slow_start_clear(struct session *s)
{
	struct held *h;

	while ((h = TAILQ_FIRST(&all)) != NULL) {
		take_out(h);
		free_held(h);
	}
}
