/* SPDX-License-Identifier: ISC */
/*
 * Requests that wait for their answer, and helpers for their params and
 * results.
 */
#include <string.h>

#include "execctl.h"
#include "files_sandbox.h"
#include "jsonrpc.h"
#include "path_uri.h"

void
reply_answered(void *arg, const struct execd_answer *a)
{
	struct reply *r = arg;

	r->done = true;
	r->code = a->code;
	if (a->code != 0) {
		r->message = xstrdup(a->message);
		return;
	}
	/* The answer is freed after this callback, so it is copied. */
	r->text = xstrndup(a->text, a->text_len);
	r->parsed = true;
	if (json_parse(&r->doc, r->text, a->text_len) == 0)
		r->result = json_get(r->doc.root, "result");
}

void
call(struct execctl *ctl, const char *method, struct buf *params,
    unsigned int flags, struct reply *r)
{
	*r = (struct reply){ 0 };
	execd_client_request(ctl->client, method,
	    params ? (const char *)params->data : NULL,
	    params ? params->len : 0, flags, reply_answered, r);
	if (params != NULL)
		buf_clear(params);
	/* This ends: the client answers all requests before it is over. */
	while (!r->done)
		loop_once(ctl);
}

void
reply_clear(struct reply *r)
{
	if (r->parsed)
		json_clear(&r->doc);
	free(r->text);
	free(r->message);
	*r = (struct reply){ 0 };
}

void
params_path(
    struct buf *b, struct json_writer *w, const char *key, const char *path)
{
	buf_init(b, 1u << 20);
	json_writer_init(w, b);
	json_begin(w, '{');
	json_key(w, key);
	json_path(w, path);
	files_sandbox_add(w);
}

int
call_failed(struct execctl *ctl, const struct reply *r, const char *what)
{
	if (execd_client_state(ctl->client) == EXECD_OVER)
		return execctl_over(ctl);
	return execctl_fail(ctl,
	    r->code == EXECD_CODE_LOST ? EXIT_CTL_UNKNOWN : EXIT_CTL_REFUSED,
	    "%s: %s", what, r->message);
}

const char *
value_string(const struct json_value *v, char *dst, size_t cap)
{
	size_t n = 0;
	const char *s = execd_json_string(v, &n);

	if (n >= cap)
		n = cap - 1;
	if (s != NULL)
		memcpy(dst, s, n);
	dst[s ? n : 0] = '\0';
	return dst;
}

/* Returns the path of a member of environmentInfo, or NULL. The caller frees
 * it. */
static char *
info_path(const struct execctl *ctl, const char *key)
{
	const struct json_value *v =
	    json_get(execd_client_info(ctl->client), key);
	struct json_doc doc = { 0 };
	struct path_uri uri;
	char error[128];
	char *path = NULL;

	if (v != NULL && v->type == JSON_STRING &&
	    path_uri_parse(&uri, &doc, v->text, error, sizeof(error)) == 0 &&
	    uri.path != NULL)
		path = xstrdup(uri.path);
	json_clear(&doc);
	return path;
}

char *
remote_path(const struct execctl *ctl, const char *path)
{
	_cleanup_free_ char *home = NULL;

	if (path[0] == '/')
		return xstrdup(path);
	home = info_path(ctl, "userHomeDir");
	if (path[0] == '\0' || strcmp(path, "~") == 0)
		return xstrdup(home ? home : "/");
	if (strncmp(path, "~/", 2) == 0)
		path += 2;
	return xasprintf("%s/%s", home ? home : "", path);
}
