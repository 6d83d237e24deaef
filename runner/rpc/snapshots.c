/* SPDX-License-Identifier: ISC */
/*
 * The states of login shells that this session has taken, and the captures that
 * run. A capture is a start like any other, in the sandbox of the command that
 * caused it; only nobody is told of it. The requests that wait for it are held
 * in starting.c, and nothing else waits.
 */
#include "base.h"
#include "methods.h"

#include <event2/event.h>

#include "loop.h"
#include "session.h"
#include "shell_snapshot.h"

/* The states that are kept, and the captures at a time. */
#define SNAPSHOTS_MAX 16

/* Of a policy, for the most part. A longer one has no state. */
#define KEY_MAX_BYTES (1u << 20)

#define CAPTURE_SECONDS 10

/* How often a state is tried to be taken, and how long after a failure. */
#define CAPTURES_MAX	3
#define CAPTURE_WAIT_MS 1000

struct snapshot {
	TAILQ_ENTRY(snapshot) link; /* all, last used first */
	char *key;		    /* owned */
	size_t key_len;
	const struct snapshot_shell *shell;
	struct shell_state state;
	struct session *session;
	bool capturing;
	struct session_process *capture; /* until it has exited */
	char nonce[SNAPSHOT_NONCE_CHARS + 1];
	struct buf output;
	struct buf began;  /* its environment, each string between NULs */
	struct event done; /* it has exited */
	unsigned captures; /* so far, without a state */
	int64_t ended_ms;  /* of the last one */
};
static TAILQ_HEAD(, snapshot) all = TAILQ_HEAD_INITIALIZER(all);
static unsigned count;

/* --- which -------------------------------------------------------------- */

/* What the state depends on: also what the operator permits. */
static void
put_key(struct buf *b, const struct session *s,
    const struct process_start_params *p)
{
	const struct shell_snapshot_params *n = &p->snapshot;
	struct json_writer w;

	json_writer_init(&w, b);
	json_begin(&w, '[');
	json_u64(&w, s->limits_number);
	json_string(&w, n->scope.ptr, n->scope.len);
	json_string(&w, n->shell.ptr, n->shell.len);
	json_string(&w, n->path.ptr, n->path.len);
	json_cstring(&w, p->cwd.path);
	json_copy(&w, n->env_policy);
	json_copy(&w, n->sandbox);
	json_end(&w, ']');
}

static void
forget(struct snapshot *n)
{
	TAILQ_REMOVE(&all, n, link);
	count--;
	shell_state_clear(&n->state);
	free(n->key);
	free(n);
}

/* Returns false if all are being taken. */
static bool
make_room(void)
{
	struct snapshot *n, *oldest = NULL;

	if (count < SNAPSHOTS_MAX)
		return true;
	TAILQ_FOREACH (n, &all, link)
		if (!n->capturing)
			oldest = n;
	if (oldest != NULL)
		forget(oldest);
	return oldest != NULL;
}

/* Only these arguments are those of a login shell with a text. */
static bool
fits(const struct process_start_params *p)
{
	const struct json_value *argv = p->argv->first;

	return p->snapshot.given && p->argv->count >= 3 &&
	       slice_equal(argv->text, p->snapshot.path) &&
	       slice_equal(argv->next->text, SLICE("-lc"));
}

bool
snapshot_check(struct request *r, const struct process_start_params *p)
{
	const struct shell_snapshot_params *n = &p->snapshot;

	if (n->given &&
	    (n->scope.len == 0 || n->scope.len > SNAPSHOT_SCOPE_MAX_BYTES))
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "shell snapshot scope must be non-empty and at most %d "
		    "bytes",
		    SNAPSHOT_SCOPE_MAX_BYTES);
	else if (fits(p) && shell_snapshot_find(n->shell) == NULL)
		reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "shell snapshots are unsupported for shell `%.*s`",
		    (int)n->shell.len, n->shell.ptr);
	else
		return true;
	return false;
}

struct snapshot *
snapshot_find(struct session *s, const struct process_start_params *p)
{
	struct snapshot *n;
	struct buf key;

	if (!fits(p))
		return NULL;
	buf_init(&key, KEY_MAX_BYTES);
	put_key(&key, s, p);
	TAILQ_FOREACH (n, &all, link)
		if (n->key_len == key.len &&
		    memcmp(n->key, key.data, key.len) == 0)
			break;
	if (n != NULL) {
		buf_clear(&key);
		TAILQ_REMOVE(&all, n, link);
	} else if (!key.failed && make_room()) {
		n = xcalloc(1, sizeof(*n));
		n->key = (char *)key.data;
		n->key_len = key.len;
		n->shell = shell_snapshot_find(p->snapshot.shell);
		n->state.fd = -1;
		n->session = s;
		count++;
	} else {
		buf_clear(&key);
		return NULL;
	}
	TAILQ_INSERT_HEAD(&all, n, link);
	return n;
}

const struct shell_state *
snapshot_state(const struct snapshot *n)
{
	return n->state.fd >= 0 ? &n->state : NULL;
}

const struct snapshot_shell *
snapshot_shell(const struct snapshot *n)
{
	return n->shell;
}

bool
snapshot_is_captured(const struct snapshot *n)
{
	return n->capturing;
}

bool
snapshot_is_due(const struct snapshot *n)
{
	return n->captures == 0 ||
	       (n->captures < CAPTURES_MAX &&
		   now_ms() - n->ended_ms >= CAPTURE_WAIT_MS);
}

/* --- the capture -------------------------------------------------------- */

static struct snapshot *
snapshot_of(const struct process *p)
{
	struct snapshot *n;

	TAILQ_FOREACH (n, &all, link)
		if (n->capture == p->owner)
			break;
	return n;
}

static void
on_output(struct process *p, uint64_t seq, enum stream stream, const void *data,
    size_t len)
{
	struct snapshot *n = snapshot_of(p);

	if (n == NULL || stream != STREAM_STDOUT)
		return;
	buf_put(&n->output, data, len);
	/* The rest would be thrown away. */
	if (n->output.failed)
		process_terminate(p);
}

static void
end_capture(struct snapshot *n, int err)
{
	if (err < 0)
		log_info("the state of a login shell was not taken: %s; its "
			 "command starts with the login",
		    strerror(-err));
	else
		n->captures = 0;
	n->ended_ms = now_ms();
}

/*
 * What the user's files left in the background may hold the output open; nobody
 * waits for that. The requests go on in a turn of their own, since they start
 * processes.
 */
static void
on_exited(struct process *p, uint64_t seq)
{
	struct session_process *sp = p->owner;
	struct snapshot *n = snapshot_of(p);

	if (sp->network != NULL)
		sp->session->server->exited(sp);
	if (n == NULL)
		return;
	n->capture = NULL;
	end_capture(n, p->timed_out ? -ETIMEDOUT
		       : n->output.failed
			   ? -EMSGSIZE
			   : shell_snapshot_take(
				 &n->output, n->nonce, &n->began, &n->state));
	buf_clear(&n->output);
	buf_clear(&n->began);
	loop_add_ms(&n->done, 0);
}

static void
on_closed(struct process *p, uint64_t seq)
{
	session_note_closed(p->owner);
}

/* Its output is for nobody who could fall behind. */
static bool
congested(struct process *p)
{
	return false;
}

const struct process_observer snapshot_observer = {
	.output = on_output,
	.exited = on_exited,
	.closed = on_closed,
	.congested = congested,
};

static void
done_cb(evutil_socket_t fd, short what, void *arg)
{
	struct snapshot *n = arg;

	n->capturing = false;
	starting_captured(n->session, n);
}

char *
snapshot_script(struct snapshot *n)
{
	shell_snapshot_nonce(n->nonce);
	return shell_snapshot_script(n->shell, n->nonce);
}

void
snapshot_begun(
    struct snapshot *n, struct session_process *sp, char *const *envp)
{
	struct session *s = sp->session;

	sp->orphaned = true;
	n->capture = sp;
	n->capturing = true;
	n->captures++;
	buf_init(&n->began, SIZE_MAX);
	buf_put_u8(&n->began, '\0');
	for (; *envp != NULL; envp++)
		buf_put(&n->began, *envp, strlen(*envp) + 1);
	buf_init(&n->output, SNAPSHOT_OUTPUT_MAX);
	event_assign(&n->done, s->base, -1, 0, done_cb, n);
	process_set_timeout(
	    &sp->process, s->base, CAPTURE_SECONDS * 1000, DEADLINE_COMMAND);
}

void
snapshot_failed(struct snapshot *n)
{
	n->captures++;
	n->ended_ms = now_ms();
}
