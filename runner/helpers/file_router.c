/* SPDX-License-Identifier: ISC */
#include "file_router.h"

#include "audit.h"
#include "helper.h"
#include "rpc_method.h"

struct held_request {
	STAILQ_ENTRY(held_request) link; /* file_router.held */
	const struct rpc_method *method;
	struct rpc_id id;
	struct spool *spool; /* NULL: none */
	uint64_t change;
	unsigned builds;
	size_t len;
	char text[];
};

void
file_router_init(struct file_router *f)
{
	f->nhandles = 0;
	STAILQ_INIT(&f->held);
	f->outstanding = 0;
	f->exclusive = false;
}

/* --- handles ------------------------------------------------------------ */

static struct routed_handle *
find_handle(const struct file_router *f, struct slice id)
{
	for (size_t i = 0; i < f->nhandles; i++)
		if (slice_equal(id, (struct slice){ f->handles[i].id,
					f->handles[i].id_len }))
			return (struct routed_handle *)&f->handles[i];
	return NULL;
}

static size_t
count_open(const struct file_router *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nhandles; i++)
		n += f->handles[i].helper != NULL;
	return n;
}

static void
remove_handle(struct file_router *f, struct routed_handle *h)
{
	*h = f->handles[--f->nhandles];
}

/* Makes room for a handle: one that was lost is told of no more. */
static void
forget_one_lost(struct file_router *f)
{
	size_t i = 0;

	while (i < f->nhandles && f->handles[i].helper != NULL)
		i++;
	if (i == f->nhandles)
		log_fatal("a helper has more handles than it may");
	remove_handle(f, &f->handles[i]);
}

static void
add_handle(
    struct file_router *f, const struct file_note *note, struct helper *by)
{
	struct routed_handle *h;

	if (f->nhandles == ROUTED_HANDLES_MAX)
		forget_one_lost(f);
	if (f->handles == NULL)
		f->handles = xcalloc(ROUTED_HANDLES_MAX, sizeof(*f->handles));
	h = &f->handles[f->nhandles++];
	h->helper = by;
	h->id_len = note->id_len;
	memcpy(h->id, note->id, note->id_len);
}

/*
 * Checks a new handle's id against those of other helpers; each helper checks
 * its own. Answers and returns false if the handle cannot be opened.
 */
static bool
check_open(struct request *r, struct slice id, const struct helper *h)
{
	const struct file_router *f = r->session->files;
	const struct routed_handle *other = find_handle(f, id);

	if (other != NULL && other->helper != NULL && other->helper != h)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "file handle `%.*s` already exists", (int)id.len, id.ptr);
	else if (helper_sandbox(h) != NULL && count_open(f) >= FILE_HANDLES_MAX)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "at most %d file handles may be open per connection",
		    FILE_HANDLES_MAX);
	else
		return true;
	return false;
}

static struct file_note
make_note(enum file_note_kind kind, struct slice id)
{
	struct file_note note = { .kind = FILE_NOTE_NONE };

	if (id.len > FILE_HANDLE_ID_MAX)
		return note;
	note.kind = kind;
	note.id_len = (uint8_t)id.len;
	memcpy(note.id, id.ptr, id.len);
	return note;
}

/* Applies a successful answer: adds or removes a handle. */
static void
take_note(
    struct file_router *f, const struct file_note *note, struct helper *by)
{
	struct routed_handle *h =
	    find_handle(f, (struct slice){ note->id, note->id_len });

	if (note->kind == FILE_NOTE_OPEN && h == NULL)
		add_handle(f, note, by);
	else if (note->kind == FILE_NOTE_OPEN)
		h->helper = by;
	else if (note->kind == FILE_NOTE_CLOSE && h != NULL)
		remove_handle(f, h);
}

void
file_router_forget(struct session *s, const struct helper *h, const char *how)
{
	struct file_router *f = s->files;

	for (size_t i = f->nhandles; i-- > 0;) {
		if (f->handles[i].helper != h)
			continue;
		f->handles[i].helper = NULL;
		f->handles[i].lost = how;
		if (how == NULL)
			remove_handle(f, &f->handles[i]);
	}
}

bool
file_router_has_handles(const struct session *s, const struct helper *h)
{
	const struct file_router *f = s->files;

	for (size_t i = 0; i < f->nhandles; i++)
		if (f->handles[i].helper == h)
			return true;
	return false;
}

/* --- who serves it ------------------------------------------------------ */

static struct slice
handle_of(const struct rpc_message *m)
{
	const struct json_value *v = json_get(m->params, "handleId");

	return v != NULL && v->type == JSON_STRING ? v->text
						   : (struct slice){ "", 0 };
}

static bool
uses_handle(const struct rpc_method *m)
{
	return m->use == FILE_HANDLE || m->use == FILE_CLOSES;
}

static bool
names_policy(const struct rpc_message *m)
{
	const struct json_value *v = json_get(m->params, "sandbox"),
				*roots = json_get(m->params, "roots");

	/* Of roots all have the same; the helper refuses others. */
	if (roots != NULL && roots->type == JSON_ARRAY && roots->first != NULL)
		v = json_get(roots->first, "sandbox");
	return v != NULL && v->type != JSON_NULL;
}

/*
 * Tells whether the request needs a helper of its own, and all others to wait.
 * One whose context does not decode counts too; it is judged in its turn.
 */
static bool
is_exclusive(struct session *s, const struct rpc_method *method,
    const struct rpc_message *m)
{
	const struct routed_handle *h;

	if (!uses_handle(method))
		return names_policy(m) || !sandboxes_permit_none(&s->sandbox);
	h = find_handle(s->files, handle_of(m));
	return h != NULL && h->helper != NULL &&
	       helper_sandbox(h->helper) != NULL;
}

struct sandbox_request
file_router_wants(const struct rpc_method *method, const struct fs_params *p)
{
	return (struct sandbox_request){
		.asked = p->has_sandbox ? &p->sandbox : NULL,
		.reads = method->use == FILE_READS ||
			 (method->use == FILE_OPENS && !p->replace),
	};
}

/*
 * Finds the sandbox of the request's policy; *sandbox is NULL if the policy
 * does not restrict files. Answers and returns false if there can be no
 * sandbox.
 */
static bool
find_sandbox(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, struct sandbox **sandbox)
{
	struct sandboxes *sb = &r->session->sandbox;
	char error[ARGS_ERROR_MAX];
	struct sandbox_request wanted;
	union method_params p;
	int err;

	*sandbox = NULL;
	if (!names_policy(m) && sandboxes_permit_none(sb))
		return true;
	err = params_decode(method->params, m, &p, error);
	if (err == 0) {
		wanted = file_router_wants(method, &p.fs);
		err = sandboxes_find(sb, &wanted, sandbox, error);
	}
	if (err == -EINPROGRESS)
		r->waits = WAITS_FOR_BUILD;
	else if (err < 0)
		reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	return err == 0;
}

void
file_router_decide(
    struct request *r, const struct rpc_method *method, struct rpc_message *m)
{
	struct sandbox *none;

	find_sandbox(r, method, m, &none);
}

static int
refuse(struct request *r, const char *layer)
{
	char error[ARGS_ERROR_MAX];

	sandboxes_refuse(layer, error);
	return reply_error(r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
}

static struct helper *
refuse_lost(struct request *r, const struct routed_handle *h)
{
	reply_error(r->channel, &r->id, RPC_NOT_FOUND,
	    "unknown file handle `%.*s`: the file helper that had it open %s",
	    (int)h->id_len, h->id, h->lost);
	return NULL;
}

static struct helper *
find_helper(
    struct request *r, const struct rpc_method *method, struct rpc_message *m)
{
	const struct routed_handle *known = NULL;
	struct sandbox *sandbox = NULL;
	struct helper *h;

	if (uses_handle(method))
		known = find_handle(r->session->files, handle_of(m));
	if (known != NULL && known->helper != NULL)
		return known->helper;
	/* To close it is nothing. */
	if (known != NULL && method->use == FILE_HANDLE)
		return refuse_lost(r, known);
	if (!uses_handle(method) && !find_sandbox(r, method, m, &sandbox))
		return NULL;
	h = helper_get(r->session, HELPER_FILES, sandbox);
	if (h == NULL && sandbox != NULL)
		refuse(r, "the file helper");
	else if (h == NULL)
		reply_os_error(r->channel, &r->id, -errno);
	return h;
}

/*
 * Records the operation before it is done. Parameters that do not decode are
 * left for the helper to refuse.
 */
static bool
record(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, bool sandboxed)
{
	char error[ARGS_ERROR_MAX];
	union method_params p;

	return !audit_wants_files(r->session) ||
	       method->family != FAMILY_FILESYSTEM ||
	       params_decode(method->params, m, &p, error) < 0 ||
	       p.fs.path.foreign || audit_file(r, method, &p.fs, sandboxed);
}

/* Who only reads cannot make a name that is missing. */
static enum sandbox_use
use_of(const struct rpc_method *method)
{
	return method->use == FILE_CHANGES || method->use == FILE_OPENS
		   ? SANDBOX_USE_MAKES
		   : SANDBOX_USE_READS;
}

/* Forwards a request whose turn has come. */
static int
forward(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len)
{
	struct file_router *f = r->session->files;
	struct helper *h = find_helper(r, method, m);
	struct slice id = handle_of(m);
	struct file_note note = { .kind = FILE_NOTE_NONE };

	if (h == NULL || (method->use == FILE_OPENS && !check_open(r, id, h)) ||
	    !record(r, method, m, helper_sandbox(h) != NULL))
		return 0;
	if (method->use == FILE_OPENS)
		note = make_note(FILE_NOTE_OPEN, id);
	else if (method->use == FILE_CLOSES)
		note = make_note(FILE_NOTE_CLOSE, id);
	if (helper_sandbox(h) != NULL &&
	    sandbox_use(helper_sandbox(h), use_of(method)) < 0)
		return refuse(r, helper_sandbox(h)->pool->step);
	note.change = r->change;
	f->outstanding++;
	f->exclusive = helper_sandbox(h) != NULL;
	return helper_forward(h, r, &note, text, len);
}

/* --- in which order ----------------------------------------------------- */

static int
hold(struct request *r, const struct rpc_method *method, const char *text,
    size_t len)
{
	struct file_router *f = r->session->files;
	struct held_request *h = xmalloc(sizeof(*h) + len);

	h->method = method;
	h->id = r->id;
	h->spool = r->spool;
	h->change = r->change;
	h->builds = 0;
	r->id = (struct rpc_id){ 0 };
	r->spool = NULL;
	h->len = len;
	memcpy(h->text, text, len);
	STAILQ_INSERT_TAIL(&f->held, h, link);
	r->session->held_bytes += len;
	r->session->client.waiting++;
	return RPC_PENDING;
}

uint64_t
file_router_number(struct session *s, const struct rpc_method *method,
    const struct rpc_message *m)
{
	if (method->family == FAMILY_EXEC)
		return s->files->changes;
	if (method->method != NULL || method->helper != HELPER_FILES ||
	    method->use == FILE_READS ||
	    method->params == params_fs_read_block ||
	    (method->use == FILE_OPENS &&
		!json_is(json_get(m->params, "mode"), "replace")))
		return 0;
	return ++s->files->changes;
}

uint64_t
file_router_oldest_change(const struct session *s)
{
	uint64_t oldest =
	    s->files->outstanding > 0 ? helper_oldest_change(s) : UINT64_MAX;
	const struct held_request *h;

	STAILQ_FOREACH (h, &s->files->held, link)
		if (h->change > 0 && h->change < oldest)
			oldest = h->change;
	return oldest;
}

static bool
has_turn(struct session *s, bool exclusive)
{
	const struct file_router *f = s->files;

	return !build_is_under_way(&f->build) &&
	       (f->outstanding == 0 || (!exclusive && !f->exclusive));
}

static const struct build_user build_user;

/* Decides about the first held request elsewhere; the others wait. */
static void
build_first(struct session *s)
{
	build_begin(&s->files->build, &build_user, &s->sandbox, NULL);
}

int
file_router_take(struct request *r, const struct rpc_method *method,
    struct rpc_message *m, const char *text, size_t len)
{
	struct session *s = r->session;

	if (!STAILQ_EMPTY(&s->files->held) ||
	    !has_turn(s, is_exclusive(s, method, m))) {
		hold(r, method, text, len);
		helper_pause_client(s);
		return RPC_PENDING;
	}
	forward(r, method, m, text, len);
	if (r->waits == WAITS_FOR_BUILD) {
		r->waits = WAITS_FOR_NOTHING;
		hold(r, method, text, len);
		build_first(s);
	}
	return RPC_PENDING;
}

/* Puts a request back at the front. Returns false if it was so too often. */
static bool
put_back(struct request *r, struct held_request *h)
{
	struct file_router *f = r->session->files;

	if (++h->builds == BUILD_TRIES) {
		refuse(r, "a view that changes");
		return false;
	}
	h->id = r->id;
	h->spool = r->spool;
	STAILQ_INSERT_HEAD(&f->held, h, link);
	r->session->held_bytes += h->len;
	r->session->client.waiting++;
	build_first(r->session);
	return true;
}

static struct request
request_of(struct session *s, const struct held_request *h)
{
	return (struct request){ .channel = &s->client.channel,
		.session = s,
		.client = &s->client,
		.id = h->id,
		.spool = h->spool,
		.change = h->change };
}

/* It was decoded before, so the copy must decode too. */
static void
parse_held(struct rpc_message *m, const struct held_request *h)
{
	if (rpc_parse(m, h->text, h->len) < 0)
		log_fatal("a held request does not decode any more");
}

/* Returns false if the first held request must still wait. */
static bool
release_first(struct session *s)
{
	struct file_router *f = s->files;
	struct held_request *h = STAILQ_FIRST(&f->held);
	struct request r = request_of(s, h);
	struct rpc_message m;
	bool turn;

	parse_held(&m, h);
	turn = has_turn(s, is_exclusive(s, h->method, &m));
	if (turn) {
		STAILQ_REMOVE_HEAD(&f->held, link);
		s->held_bytes -= h->len;
		s->client.waiting--;
		forward(&r, h->method, &m, h->text, h->len);
	}
	rpc_message_clear(&m);
	if (!turn || (r.waits == WAITS_FOR_BUILD && put_back(&r, h)))
		return false;
	rpc_id_clear(&r.id);
	spool_free(r.spool);
	free(h);
	return true;
}

static void
decide_first(struct build *b)
{
	struct session *s = TABLE_OBJECT(b, struct file_router, build)->session;
	const struct held_request *h = STAILQ_FIRST(&s->files->held);
	struct request r = request_of(s, h);
	struct rpc_message m;

	parse_held(&m, h);
	file_router_decide(&r, h->method, &m);
}

static void
decided_first(struct build *b, struct sandbox_verdict *v)
{
	struct session *s = TABLE_OBJECT(b, struct file_router, build)->session;

	s->sandbox.made = v;
	release_first(s);
	s->sandbox.made = NULL;
	file_router_resume(s);
}

static const struct build_user build_user = { decide_first, decided_first };

void
file_router_decide_again(struct session *s)
{
	if (!build_is_under_way(&s->files->build))
		return;
	build_stop(&s->files->build);
	build_first(s);
}

void
file_router_answered(struct session *s, struct helper *by,
    const struct file_note *note, bool failed)
{
	struct file_router *f = s->files;

	if (helper_sandbox(by) != NULL)
		sandbox_release(helper_sandbox(by));
	if (!failed && note->kind != FILE_NOTE_NONE)
		take_note(f, note, by);
	f->outstanding--;
	file_router_resume(s);
}

void
file_router_resume(struct session *s)
{
	struct file_router *f = s->files;

	while (!STAILQ_EMPTY(&f->held) && release_first(s))
		continue;
	helper_pause_client(s);
	s->server->files_answered(s);
}

void
file_router_clear(struct session *s)
{
	struct file_router *f = s->files;
	struct held_request *h;

	build_stop(&f->build);
	while ((h = STAILQ_FIRST(&f->held)) != NULL) {
		STAILQ_REMOVE_HEAD(&f->held, link);
		s->held_bytes -= h->len;
		rpc_id_clear(&h->id);
		spool_free(h->spool);
		free(h);
	}
	file_router_init(f);
}
