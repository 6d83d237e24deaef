/* SPDX-License-Identifier: ISC */
/* Requests that wait in the process that they start, and those behind them. */
#include "base.h"
#include "methods.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "file_router.h"
#include "helper.h"
#include "loop.h"
#include "pattern_scan.h"
#include "process_tree.h"
#include "session.h"
#include "slow_paths.h"

/* Of a probe, where it tells how far it is. */
#define PROGRESS_FD 3

/* Scripts whose interpreter is a script, as in the kernel. */
#define INTERPRETERS_MAX 5

/* In place of the next path. */
#define ALL_OPENED UINT32_MAX

TAILQ_HEAD(held_list, held);

struct held {
	TAILQ_ENTRY(held) link;	 /* all, or behind another one */
	struct held_list behind; /* for the same process or file, in order */
	const struct rpc_method *method;
	struct request r;     /* owns its id, spool and start */
	struct rpc_message m; /* points into text */
	union method_params params;
	struct slice object;	   /* the id of what it begins; or empty */
	char **paths;		   /* owned; NULL: it waits for no path */
	struct reaper_watch probe; /* that opens them */
	int fd;			   /* from the probe */
	uint32_t at;		   /* which path the probe opens */
	struct event in_event, deadline;
	size_t len;
	char text[];
};
static struct held_list all = TAILQ_HEAD_INITIALIZER(all);
static unsigned count;
static struct held *scanned; /* for whose patterns was asked */

static int start_probe(struct held *h);
static void deadline_cb(evutil_socket_t fd, short what, void *arg);
static void refuse(struct held *h, int err, const char *why);

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

/* --- what it waits for -------------------------------------------------- */

/* The probe goes on without it: what waits in the kernel stays. */
static void
forget_probe(struct held *h)
{
	if (h->paths == NULL)
		return;
	event_del(&h->in_event);
	close(h->fd);
	if (h->probe.pid > 0)
		kill(h->probe.pid, SIGKILL);
	reaper_remove(&h->probe);
	slow_paths_free(h->paths);
	h->paths = NULL;
}

static void
free_held(struct held *h)
{
	count--;
	h->r.session->held_bytes -= h->len;
	h->r.client->waiting--;
	event_del(&h->deadline);
	start_free(h->r.start);
	rpc_id_clear(&h->r.id);
	spool_free(h->r.spool);
	rpc_message_clear(&h->m);
	slow_paths_free(h->r.slow);
	free(h);
}

/* One scan at a time; the next one is asked for when it has answered. */
static void
ask_for_patterns(struct session *s)
{
	struct held *h;

	TAILQ_FOREACH (h, &all, link)
		if (h->r.waits == WAITS_FOR_PATTERNS)
			break;
	if (h == NULL || scanned != NULL ||
	    s->scan->asked_for != SCAN_FOR_NOBODY)
		return;
	scanned = h;
	pattern_scan_ask(s, SCAN_FOR_START, h->text, h->len);
}

static bool
names_file(const struct rpc_method *m)
{
	return m->method == NULL && m->helper == HELPER_FILES &&
	       m->use != FILE_READS && m->use != FILE_CHANGES;
}

static struct slice
object_of(const struct held *h)
{
	const struct json_value *v = json_get(h->m.params, "handleId");

	if (h->r.start != NULL)
		return start_process_id(h->r.start);
	return names_file(h->method) && v != NULL && v->type == JSON_STRING
		   ? v->text
		   : (struct slice){ "", 0 };
}

/* Lets it wait for what its request has said. */
static void
wait_on(struct held *h)
{
	int err;

	TAILQ_INSERT_TAIL(&all, h, link);
	h->object = object_of(h);
	if (h->r.waits == WAITS_FOR_PATTERNS)
		ask_for_patterns(h->r.session);
	else if (h->r.waits != WAITS_FOR_STATE)
		loop_add_ms(&h->deadline, START_WAIT_SECONDS * 1000);
	if (h->r.waits == WAITS_FOR_PATHS && (err = start_probe(h)) < 0)
		refuse(h, err, strerror(-err));
}

/* --- which request waits for which -------------------------------------- */

/* The first one that begins a process or a file which the request names. */
static struct held *
first_of(const struct rpc_method *method, const struct rpc_message *m)
{
	static const char *const names[] = { "processId", "sessionId", "of",
		"handleId" };
	bool file = names_file(method);
	const struct json_value *v;
	struct held *h;

	if (!file && method->family != FAMILY_EXEC)
		return NULL;
	for (size_t i = file ? 3 : 0; i < (file ? 4 : 3); i++) {
		v = json_get(m->params, names[i]);
		if (v == NULL || v->type != JSON_STRING || v->text.len == 0)
			continue;
		TAILQ_FOREACH (h, &all, link)
			if (names_file(h->method) == file &&
			    slice_equal(v->text, h->object))
				return h;
	}
	return NULL;
}

static int
refuse_to_hold(struct request *r)
{
	start_free(r->start);
	r->start = NULL;
	slow_paths_free(r->slow);
	r->slow = NULL;
	return reply_error(r->channel, &r->id, RPC_MALFORMED,
	    "at most %d requests may wait for a start", REQUESTS_WAITING_MAX);
}

static int
hold(struct request *r, const struct rpc_method *method, struct rpc_message *m,
    const char *text, size_t len, struct held *before)
{
	char error[ARGS_ERROR_MAX];
	struct held *h;

	if (count == REQUESTS_WAITING_MAX)
		return refuse_to_hold(r);
	h = xcalloc(1, sizeof(*h) + len);
	TAILQ_INIT(&h->behind);
	h->method = method;
	h->r = *r;
	r->id = (struct rpc_id){ 0 };
	r->spool = NULL;
	h->len = len;
	memcpy(h->text, text, len);
	h->m = *m;
	h->m.method = (struct slice){ method->name, strlen(method->name) };
	m->doc = (struct json_doc){ 0 };
	json_move(&h->m.doc, text, len, h->text);
	if (method->method != NULL &&
	    params_decode(method->params, &h->m, &h->params, error) < 0)
		log_fatal("a held request does not decode any more");
	event_assign(&h->deadline, r->session->base, -1, 0, deadline_cb, h);
	count++;
	r->session->held_bytes += len;
	r->client->waiting++;
	if (before != NULL)
		TAILQ_INSERT_TAIL(&before->behind, h, link);
	else
		wait_on(h);
	helper_pause_client(r->session);
	return RPC_PENDING;
}

bool
starting_take(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len)
{
	struct held *before = count > 0 ? first_of(method, m) : NULL;

	if (before != NULL)
		hold(r, method, m, text, len, before);
	return before != NULL;
}

int
starting_hold(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len)
{
	return hold(r, method, m, text, len, NULL);
}

/* --- how it goes on ----------------------------------------------------- */

static void go_on(struct held *h);

/* The held one is answered: those behind it follow, as if they came now. */
static void
finish(struct held *h)
{
	struct session *s = h->r.session;
	struct held *f, *before;

	start_free(h->r.start);
	h->r.start = NULL;
	while ((f = TAILQ_FIRST(&h->behind)) != NULL) {
		TAILQ_REMOVE(&h->behind, f, link);
		before = first_of(f->method, &f->m);
		if (!channel_is_open(f->r.channel))
			free_held(f);
		else if (before != NULL)
			TAILQ_INSERT_TAIL(&before->behind, f, link);
		else
			go_on(f);
	}
	free_held(h);
	helper_pause_client(s);
	starting_look(s);
}

/* The held one waits for nothing now. It is in no list: nothing that ends the
 * connection meanwhile may find it. */
static void
go_on(struct held *h)
{
	event_del(&h->deadline);
	forget_probe(h);
	h->r.waits = WAITS_FOR_NOTHING;
	methods_carry_out(&h->r, h->method, &h->m, &h->params, h->text, h->len);
	if (h->r.waits != WAITS_FOR_NOTHING && channel_is_open(h->r.channel))
		wait_on(h);
	else
		finish(h);
}

static void
resume(struct held *h)
{
	TAILQ_REMOVE(&all, h, link);
	go_on(h);
}

static void
refuse(struct held *h, int err, const char *why)
{
	TAILQ_REMOVE(&all, h, link);
	forget_probe(h);
	reply_error_kind(h->r.channel, &h->r.id, RPC_INTERNAL,
	    h->r.start != NULL ? KIND_FAILED : NULL, "%s (os error %d)", why,
	    -err);
	finish(h);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct held *h = arg;
	_cleanup_free_ char *why = NULL;
	const char *path;

	if (h->r.waits == WAITS_FOR_FILES &&
	    starting_oldest_change(h->r.session) > h->r.change) {
		resume(h);
		return;
	}
	if (h->r.waits == WAITS_FOR_FILES) {
		why = xasprintf("earlier requests that change files were not "
				"answered within %d s",
		    START_WAIT_SECONDS);
	} else {
		path = h->r.waits == WAITS_FOR_EXEC ? start_path(h->r.start)
						    : h->paths[h->at];
		log_warn(0, "a file system did not answer within %d s",
		    START_WAIT_SECONDS);
		why = xasprintf(
		    "`%s`: its file system did not answer within %d s", path,
		    START_WAIT_SECONDS);
	}
	refuse(h, -ETIMEDOUT, why);
}

void
starting_executed(struct session_process *sp, const struct spawn_fault *fault)
{
	struct held *h;

	TAILQ_FOREACH (h, &all, link)
		if (start_take(h->r.start, &sp->process, fault))
			break;
	if (h != NULL)
		resume(h);
}

/* Each waits once: what goes on here waits for no capture any more. */
void
starting_captured(struct session *s, const struct snapshot *n)
{
	struct held *h;

	do {
		TAILQ_FOREACH (h, &all, link)
			if (h->r.waits == WAITS_FOR_STATE && h->r.capture == n)
				break;
		if (h != NULL)
			resume(h);
	} while (h != NULL);
}

void
starting_scanned(struct session *s, const struct resolve_matches *found)
{
	struct held *h = scanned;

	scanned = NULL;
	if (h != NULL) {
		s->sandbox.known = found;
		resume(h);
		s->sandbox.known = NULL;
	}
	ask_for_patterns(s);
}

/* --- after files -------------------------------------------------------- */

uint64_t
starting_oldest_change(const struct session *s)
{
	uint64_t oldest = file_router_oldest_change(s);
	struct held *h, *f;

	TAILQ_FOREACH (h, &all, link) {
		if (h->r.change > 0 && h->r.change < oldest &&
		    h->method->method == NULL)
			oldest = h->r.change;
		TAILQ_FOREACH (f, &h->behind, link)
			if (f->r.change > 0 && f->r.change < oldest &&
			    f->method->method == NULL)
				oldest = f->r.change;
	}
	return oldest;
}

/* Not now: whoever tells of the answer may be in the middle of something. */
void
starting_look(struct session *s)
{
	uint64_t oldest = UINT64_MAX;
	struct held *h;
	bool asked = false;

	TAILQ_FOREACH (h, &all, link) {
		if (h->r.waits != WAITS_FOR_FILES)
			continue;
		if (!asked)
			oldest = starting_oldest_change(s);
		asked = true;
		if (oldest > h->r.change)
			loop_add_ms(&h->deadline, 0);
	}
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
		refuse(h, -EIO,
		    "the process that opens the paths of this request ended");
	else if (at == ALL_OPENED)
		resume(h);
	else
		h->at = at;
}

/* 0, or -errno. */
static int
start_probe(struct held *h)
{
	int fds[2], err;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	err = -errno;
	if (pid == 0)
		child(h->r.slow, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err;
	}
	h->paths = h->r.slow;
	h->r.slow = NULL;
	h->r.opened = true;
	h->at = 0;
	h->fd = fds[0];
	reaper_add(&h->probe, pid, NULL);
	event_assign(&h->in_event, h->r.session->base, h->fd,
	    EV_READ | EV_PERSIST, in_cb, h);
	loop_add(&h->in_event, NULL);
	return 0;
}

/* --- who leaves --------------------------------------------------------- */

void
starting_forget(const struct client *c)
{
	struct held *h, *f, *next;

	TAILQ_FOREACH (h, &all, link)
		TAILQ_FOREACH_SAFE (f, &h->behind, link, next)
			if (f->r.client == c) {
				TAILQ_REMOVE(&h->behind, f, link);
				free_held(f);
			}
}

/* Requests of connections that only watch are answered. */
void
starting_clear(void)
{
	struct held_list dropped = TAILQ_HEAD_INITIALIZER(dropped);
	struct held *h;

	scanned = NULL;
	TAILQ_CONCAT(&dropped, &all, link);
	while ((h = TAILQ_FIRST(&dropped)) != NULL) {
		TAILQ_REMOVE(&dropped, h, link);
		forget_probe(h);
		finish(h);
	}
}
