/* SPDX-License-Identifier: ISC */
/* Requests that wait in the process that they start, and those behind them. */
#include "base.h"
#include "methods.h"

#include <event2/event.h>

#include "helper.h"
#include "loop.h"
#include "slow_paths.h"

/* How many trees are searched at the same time. What waits for a file system
 * does not count. */
#define SEARCHES_MAX 4

/* What a start waits for may have come in the same turn of the loop, and has
 * the same deadline: it is answered first. */
#define AFTER_MS 100

TAILQ_HEAD(held_list, held);

struct held {
	TAILQ_ENTRY(held) link;	 /* all, or behind another one */
	struct held_list behind; /* for the same process or file, in order */
	const struct rpc_method *method;
	struct request r;     /* owns its id, spool and start */
	struct rpc_message m; /* points into text */
	union method_params params;
	struct slice object; /* the id of what it begins; or empty */
	struct build build;
	struct event deadline;
	size_t len;
	char text[];
};
static struct held_list all = TAILQ_HEAD_INITIALIZER(all);
static unsigned count;

static void deadline_cb(evutil_socket_t fd, short what, void *arg);
static void refuse(struct held *h, int err, const char *why);

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

/* In the process that decides. */
static void
go_on_there(struct build *b)
{
	struct held *h = TABLE_OBJECT(b, struct held, build);

	h->r.opened = true;
	h->r.waits = WAITS_FOR_NOTHING;
	if (h->r.start != NULL)
		methods_carry_out(
		    &h->r, h->method, &h->m, &h->params, h->text, h->len);
	else if (h->method->method == NULL)
		file_router_decide(&h->r, h->method, &h->m);
}

static void built(struct build *b, struct sandbox_verdict *v);

static const struct build_user build_user = { go_on_there, built };

static void
begin_builds(void)
{
	unsigned searches = 0;
	struct held *h;

	TAILQ_FOREACH (h, &all, link)
		searches += build_is_under_way(&h->build) && h->r.slow == NULL;
	TAILQ_FOREACH (h, &all, link) {
		if (h->r.waits != WAITS_FOR_BUILD ||
		    build_is_under_way(&h->build) ||
		    (h->r.slow == NULL && searches >= SEARCHES_MAX))
			continue;
		searches += h->r.slow == NULL;
		build_begin(
		    &h->build, &build_user, &h->r.session->sandbox, h->r.slow);
	}
}

/* Lets it wait for what its request has said. */
static void
wait_on(struct held *h)
{
	TAILQ_INSERT_TAIL(&all, h, link);
	h->object = object_of(h);
	if (h->r.waits == WAITS_FOR_BUILD && h->r.builds++ == BUILD_TRIES)
		refuse(h, -EAGAIN, "a view that changes");
	else if (h->r.waits == WAITS_FOR_BUILD)
		begin_builds();
	else if (h->r.waits != WAITS_FOR_STATE)
		loop_add_ms(&h->deadline,
		    START_WAIT_SECONDS * 1000 +
			(h->r.waits == WAITS_FOR_FILES ? AFTER_MS : 0));
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
	h->m.method = slice_of(method->name);
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
	reply_error_kind(h->r.channel, &h->r.id, RPC_INTERNAL,
	    h->r.start != NULL ? KIND_FAILED : NULL, "%s (os error %d)", why,
	    -err);
	finish(h);
}

static void
refuse_path(struct held *h, const char *path)
{
	_cleanup_free_ char *why =
	    xasprintf("`%s`: its file system did not answer within %d s", path,
		START_WAIT_SECONDS);

	log_warn(
	    0, "a file system did not answer within %d s", START_WAIT_SECONDS);
	refuse(h, -ETIMEDOUT, why);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct held *h = arg;
	_cleanup_free_ char *why = NULL;

	if (h->r.waits == WAITS_FOR_FILES &&
	    starting_oldest_change(h->r.session) > h->r.change) {
		resume(h);
		return;
	}
	if (h->r.waits == WAITS_FOR_EXEC) {
		refuse_path(h, start_path(h->r.start));
		return;
	}
	why = xasprintf("earlier requests that change files were not answered "
			"within %d s",
	    START_WAIT_SECONDS);
	refuse(h, -ETIMEDOUT, why);
}

/* The request goes on with the verdict, which is for nobody else. */
static void
built(struct build *b, struct sandbox_verdict *v)
{
	struct held *h = TABLE_OBJECT(b, struct held, build);
	struct sandboxes *sb = &h->r.session->sandbox;

	if (v != NULL && v->err == -ETIMEDOUT) {
		refuse_path(h, build_path(b));
	} else if (v != NULL && v->err == -EIO) {
		refuse(h, -EIO,
		    "the process that opens the paths of this request ended");
	} else {
		h->r.opened = true;
		slow_paths_free(h->r.slow);
		h->r.slow = NULL;
		sb->made = v;
		resume(h);
		sb->made = NULL;
	}
	begin_builds();
}

void
starting_decide_again(struct session *s)
{
	struct held *h;

	TAILQ_FOREACH (h, &all, link)
		if (h->r.session == s)
			build_stop(&h->build);
	begin_builds();
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

	TAILQ_CONCAT(&dropped, &all, link);
	while ((h = TAILQ_FIRST(&dropped)) != NULL) {
		TAILQ_REMOVE(&dropped, h, link);
		build_stop(&h->build);
		finish(h);
	}
}
