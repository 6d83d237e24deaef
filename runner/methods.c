/*
 * The dispatcher: envelope, then parameters, then state, then the method
 * (PROTOCOL.md sections 2 and 4).
 */
#include "methods.h"

#include <errno.h>
#include <string.h>

#include "helper.h"

const struct rpc_method rpc_methods[] = {
#define METHOD(name, wire, family, when)                                       \
	{ wire, FAMILY_##family, when, params_##name, method_##name, 0 },
#define FILE_METHOD(name, wire)                                                \
	{ wire, FAMILY_FILESYSTEM, SESSION_READY, params_##name, NULL,         \
		HELPER_FILES },
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
		if (strlen(rpc_methods[i].name) == name.len &&
		    !memcmp(rpc_methods[i].name, name.ptr, name.len))
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
	return reply_error(r->channel, &r->id, RPC_MALFORMED,
	    "client must %s before using %s methods",
	    r->session->state == SESSION_NEW ? "call initialize"
					     : "send initialized",
	    method_family_name(m->family));
}

static int
forward_http(struct request *r, const char *text, size_t len)
{
	struct helper *h = helper_get(r->session, HELPER_HTTP, NULL);

	if (h == NULL)
		return reply_os_error(r->channel, &r->id, -errno);
	return helper_forward(h, r, NULL, text, len);
}

static int
answer(struct request *r, struct rpc_message *msg, const char *text, size_t len)
{
	const struct rpc_method *m = rpc_method_find(msg->method);
	bool permitted = m != NULL && (m->when & r->session->state);
	char error[ARGS_ERROR_MAX];
	union method_params params;

	if (m == NULL)
		return refuse_unknown(r, msg->method);
	/* The helper decodes what is its own. */
	if (m->method == NULL && permitted)
		return m->helper == HELPER_FILES
			   ? file_router_take(r, m, msg, text, len)
			   : forward_http(r, text, len);
	if (m->params(msg, &params, error) < 0)
		return reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	if (!permitted)
		return refuse_state(r, m);
	return m->method(r, &params);
}

static void
take_notification(struct session *s, struct slice method)
{
	if (slice_equal(method, SLICE("initialized")) &&
	    s->state != SESSION_NEW)
		s->state = SESSION_READY;
	else
		session_violation(s);
}

static void
refuse_malformed(struct session *s, const char *detail)
{
	/* The peer words it after the transport: its name and address. */
	reply_error(&s->channel, NULL, RPC_MALFORMED,
	    strcmp(s->peer, "stdio") == 0
		? "failed to parse JSON-RPC message from exec-server %s: %s"
		: "failed to parse websocket JSON-RPC message from exec-server %s: %s",
	    s->peer, detail);
}

void
methods_dispatch(struct session *s, char *text, size_t len)
{
	struct request r = { .channel = &s->channel, .session = s };
	struct rpc_message msg;

	if (rpc_parse(&msg, text, len) < 0) {
		refuse_malformed(s, msg.doc.error);
	} else if (msg.kind == RPC_KIND_REQUEST) {
		rpc_id_copy(&r.id, msg.id);
		answer(&r, &msg, text, len);
		rpc_id_clear(&r.id);
	} else if (msg.kind == RPC_KIND_NOTIFICATION) {
		take_notification(s, msg.method);
	} else {
		session_violation(s);
	}
	rpc_message_clear(&msg);
}
