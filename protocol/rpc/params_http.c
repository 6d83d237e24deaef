/* SPDX-License-Identifier: ISC */
/*
 * Params of http/request (doc/protocol.md section 12).
 */
#include <string.h>

#include "params.h"

static void
decode_header(struct args *a, const struct json_value *v, struct http_header *h)
{
	struct args in;

	args_init(&in, a->doc, v, "HttpHeader");
	h->name = args_string(&in, "name");
	h->value = args_string(&in, "value");
	if (!args_opt_string(&in, "valueEnvVar", &h->env_var))
		h->env_var = (struct slice){ NULL, 0 };
	if (args_end(&in) < 0)
		args_fail(a, "%s", in.error);
}

static void
decode_headers(struct args *a, struct http_request_params *r)
{
	const struct json_value *list = args_default_list(a, "headers");

	if (list == NULL || list->count == 0)
		return;
	r->headers = json_alloc(a->doc, list->count * sizeof(*r->headers));
	for (const struct json_value *v = list->first; v; v = v->next) {
		r->headers[r->header_count] = (struct http_header){ 0 };
		decode_header(a, v, &r->headers[r->header_count++]);
	}
}

int
params_http_request(struct rpc_message *m, union method_params *p, char *error)
{
	static const char *const policies[] = { "follow", "stop", NULL };
	struct http_request_params *r = &p->http_request;
	const struct json_value *timeout;
	struct args a;

	memset(r, 0, sizeof(*r));
	args_init(&a, &m->doc, m->params, "HttpRequestParams");
	r->method = args_string(&a, "method");
	r->url = args_string(&a, "url");
	decode_headers(&a, r);
	r->has_body = args_opt_base64(&a, "bodyBase64", &r->body);
	timeout = json_get(a.object, "timeoutMs");
	r->has_timeout = timeout != NULL && timeout->type != JSON_NULL;
	r->timeout_ms = args_opt_u64(&a, "timeoutMs", 0);
	r->follow_redirects =
	    args_default_enum(&a, "redirectPolicy", policies, 0) == 0;
	r->request_id = args_string(&a, "requestId");
	r->stream = args_default_bool(&a, "streamResponse", false);
	return params_end(&a, error);
}
