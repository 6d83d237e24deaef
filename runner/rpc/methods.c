/* SPDX-License-Identifier: ISC */
/*
 * The dispatcher: envelope, then parameters, then state, then the method
 * (doc/protocol.md sections 2 and 4).
 */
#include "methods.h"

#include "helper.h"
#include "netproxy.h"
#include "slow_paths.h"

const struct rpc_method rpc_methods[] = {
#define METHOD(name, wire, family, when, repeat)                               \
	{ wire, FAMILY_##family, when, params_##name, method_##name, 0 },
#define FILE_METHOD(name, wire, family, use, repeat)                           \
	{ wire, FAMILY_##family, SESSION_READY, params_##name, NULL,           \
		HELPER_FILES, FILE_##use },
#define HTTP_METHOD(name, wire)                                                \
	{ wire, FAMILY_HTTP, SESSION_READY, params_##name, NULL, HELPER_HTTP },
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD
};
const size_t rpc_methods_count = nitems(rpc_methods);

const struct rpc_method *
rpc_method_find(struct slice name)
{
	for (size_t i = 0; i < rpc_methods_count; i++)
		if (slice_equal(slice_of(rpc_methods[i].name), name))
			return &rpc_methods[i];
	return NULL;
}

static int
refuse_unknown(struct request *r, struct slice method)
{
	struct buf text;

	buf_init(&text, method.len + 64);
	buf_puts(&text, "exec-server stub does not implement `");
	buf_put(&text, method.ptr, method.len);
	buf_puts(&text, "` yet");
	reply_error_text(r->channel, &r->id, RPC_UNKNOWN_METHOD,
	    (char *)text.data, text.len);
	buf_clear(&text);
	return 0;
}

static int
refuse_state(struct request *r, const struct rpc_method *m)
{
	if (m->family == FAMILY_INITIALIZE)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "initialize may only be sent once per connection");
	if (r->client->state == SESSION_WATCHING)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "a connection that watches a session may not use %s",
		    m->name);
	return reply_error(r->channel, &r->id, RPC_MALFORMED,
	    "client must %s before using %s methods",
	    r->client->state == SESSION_NEW ? "call initialize"
					    : "send initialized",
	    method_family_name(m->family));
}

static int
forward_http(
    struct request *r, struct rpc_message *msg, const char *text, size_t len)
{
	char error[ARGS_ERROR_MAX];
	union method_params p;
	struct helper *h;

	if (ceiling_judge_network(&r->session->sandbox.ceiling, error) < 0)
		return reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	/* If the parameters do not decode, execd-http refuses them. */
	if (audit_wants_files(r->session) &&
	    params_decode(params_http_request, msg, &p, error) == 0 &&
	    !audit_http(r, &p.http_request))
		return 0;
	h = helper_get(r->session, HELPER_HTTP, NULL);
	if (h == NULL)
		return reply_os_error(r->channel, &r->id, -errno);
	return helper_forward(h, r, NULL, text, len);
}

static bool
may_start_process(const struct rpc_method *m)
{
	return m->family == FAMILY_EXEC || m->family == FAMILY_FILESYSTEM ||
	       m->family == FAMILY_HTTP ||
	       m->family == FAMILY_ENVIRONMENT_CONFIG ||
	       m->family == FAMILY_CAPABILITY_DISCOVERY;
}

static int
settle(struct request *r, const struct rpc_method *m)
{
	int err = may_start_process(m) ? session_settle(r->session) : 0;

	if (err < 0)
		reply_error(r->channel, &r->id, RPC_INTERNAL,
		    "this session cannot start anything: %s", strerror(-err));
	return err;
}

/*
 * The runner itself opens the paths of a file request's policy. Returns true if
 * a file system must answer first.
 */
static bool
has_slow_policy(
    struct request *r, const struct rpc_method *m, struct rpc_message *msg)
{
	const struct slow_mounts *mounts = slow_paths_now();
	struct sandbox_request wanted;
	char error[ARGS_ERROR_MAX];
	union method_params p;

	/* What does not decode is refused in its turn. */
	if (mounts == NULL || r->opened || m->use == FILE_HANDLE ||
	    m->use == FILE_CLOSES ||
	    params_decode(m->params, msg, &p, error) < 0)
		return false;
	wanted = file_router_wants(m, &p.fs);
	if (wanted.asked != NULL ||
	    !sandboxes_permit_none(&r->session->sandbox))
		slow_start_add_policy(
		    &r->slow, mounts, &r->session->sandbox.ceiling, &wanted);
	return r->slow != NULL;
}

void
methods_carry_out(struct request *r, const struct rpc_method *m,
    struct rpc_message *msg, const union method_params *p, const char *text,
    size_t len)
{
	if (settle(r, m) < 0 ||
	    (m->method == method_fs_watch && !r->opened &&
		!audit_file(r, m, &p->fs, p->fs.has_sandbox)))
		return;
	if (m->method != NULL)
		m->method(r, p);
	else if (m->helper == HELPER_HTTP)
		forward_http(r, msg, text, len);
	else if (!has_slow_policy(r, m, msg))
		file_router_take(r, m, msg, text, len);
	if (r->slow != NULL)
		r->waits = WAITS_FOR_BUILD;
}

static int
answer(struct request *r, struct rpc_message *msg, const char *text, size_t len)
{
	const struct rpc_method *m = rpc_method_find(msg->method);
	bool permitted = m != NULL && (m->when & r->client->state);
	char error[ARGS_ERROR_MAX];
	union method_params params;

	if (m == NULL)
		return refuse_unknown(r, msg->method);
	/* A helper decodes its own parameters. */
	if ((m->method != NULL || !permitted) &&
	    params_decode(m->params, msg, &params, error) < 0)
		return reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	if (!permitted)
		return refuse_state(r, m);
	r->change = file_router_number(r->session, m, msg);
	if (starting_take(r, m, msg, text, len))
		return RPC_PENDING;
	methods_carry_out(r, m, msg, &params, text, len);
	return r->waits != WAITS_FOR_NOTHING
		   ? starting_hold(r, m, msg, text, len)
		   : 0;
}

struct session_process *
method_find_process(struct request *r, struct slice id)
{
	struct session_process *p = session_find(r->session, id);

	if (p == NULL)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "unknown process id %.*s", (int)id.len, id.ptr);
	return p;
}

static void
take_notification(struct client *c, struct slice method)
{
	if (slice_equal(method, SLICE("initialized")) &&
	    c->state != SESSION_NEW)
		c->state = c->watching ? SESSION_WATCHING : SESSION_READY;
	else
		client_violation(c);
}

static void
refuse_malformed(struct client *c, const char *detail)
{
	/*
	 * The peer's text depends on the transport and names the client's
	 * address.
	 */
	reply_error(&c->channel, NULL, RPC_MALFORMED,
	    strcmp(c->peer, "stdio") == 0
		? "failed to parse JSON-RPC message from exec-server %s: %s"
		: "failed to parse websocket JSON-RPC message from exec-server %s: %s",
	    c->peer, detail);
}

/* Handles one message of the client: answers it, or ends the connection. */
static void
methods_dispatch(struct client *c, char *text, size_t len)
{
	struct request r = { .channel = &c->channel,
		.session = c->session,
		.client = c,
		.spool = channel_take_spool(&c->channel) };
	struct rpc_message msg;

	if (rpc_parse(&msg, text, len) < 0) {
		refuse_malformed(c, msg.doc.error);
	} else if (msg.kind == RPC_KIND_REQUEST) {
		rpc_id_copy(&r.id, msg.id);
		answer(&r, &msg, text, len);
		rpc_id_clear(&r.id);
	} else if (msg.kind == RPC_KIND_NOTIFICATION) {
		take_notification(c, msg.method);
	} else if (!netproxy_take_answer(c, &msg)) {
		client_violation(c);
	}
	rpc_message_clear(&msg);
	if (r.spool != NULL)
		spool_free(r.spool);
}

static struct file_router files;

/* --- the session -------------------------------------------------------- */

static void
begin(struct session *s)
{
	s->files = &files;
	files.session = s;
	file_router_init(s->files);
}

static void
drained(struct session *s)
{
	helper_resume_all(s);
	netproxy_resume(s);
	watches_resume(s);
}

/* HTTP exchanges could last as long as their servers like. */
static void
hung_up(struct session *s)
{
	helper_stop_http(s);
	netproxy_detached(s);
}

/* File handles, HTTP exchanges and watched directories belong to the
 * connection. */
static void
detached(struct session *s)
{
	helper_stop_all(s);
	starting_clear();
	watch_stop(s);
	watches_stop(s);
	netproxy_detached(s);
	netproxy_resume(s);
}

const struct session_server server = {
	.begin = begin,
	.message = methods_dispatch,
	.drained = drained,
	.hung_up = hung_up,
	.detached = detached,
	.executed = starting_executed,
	.files_answered = starting_look,
	.left = starting_forget,
	.give_up = helper_give_up,
	.exited = netproxy_settle,
	.closed = netproxy_close,
};
