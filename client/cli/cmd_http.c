/* SPDX-License-Identifier: ISC */
/*
 * execctl http: the server sends an HTTP request and returns the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "cmd.h"
#include "execctl.h"

#define BODY_MAX   (8u << 20)  /* bytes; a whole request has 16 MiB */
#define EARLY_MAX  (64u << 20) /* bytes of body before the answer */
#define EARLY_TEXT "more than 64 MiB of the body came before the answer"

const struct option_row http_options[] = {
	{ "method", 'X', "METHOD", "GET, or POST with a body" },
	{ "header", 'H', "NAME: VALUE", "a header; may be repeated" },
	{ "data", 'D', "FILE",
	    "send this file as the body; - is standard "
	    "input",
	    COMPLETES_FILE },
	{ "timeout", 'T', "TIME", "limit for the whole request" },
	{ "include", 'i', NULL, "write status and headers first" },
	{ "no-redirect", 0, NULL, "do not follow redirects" },
	{ 0 },
};

struct exchange {
	struct output out;
	struct buf early; /* body that came before the answer */
	bool answered, done;
	bool failed;
	char *error;
};

/* --- The request -------------------------------------------------------- */

static int
read_body(struct execctl *ctl, const char *file, struct buf *body)
{
	int fd = STDIN_FILENO;
	_cleanup_close_ int opened = -1;
	ssize_t n = 1;

	if (strcmp(file, "-") != 0)
		fd = opened = open(file, O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && n > 0) {
		uint8_t *at = buf_reserve(body, 65536);

		if (at == NULL)
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    "--data: %s: longer than %u bytes", file, BODY_MAX);
		n = read(fd, at, 65536);
		if (n > 0)
			buf_commit(body, (size_t)n);
	}
	if (fd < 0 || n < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "--data: %s: %s", file,
		    strerror(errno));
	return 0;
}

static int
write_headers(struct execctl *ctl, struct json_writer *w)
{
	const char *header;

	json_key_begin(w, "headers", '[');
	for (size_t i = 0;
	     (header = option_nth(ctl->parsed, "header", i)) != NULL; i++) {
		const char *colon = strchr(header, ':');

		if (colon == NULL || colon == header)
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    "--header: `%s' is not NAME: VALUE", header);
		json_begin(w, '{');
		json_key_string(w, "name", header, (size_t)(colon - header));
		json_key_cstring(
		    w, "value", colon + 1 + strspn(colon + 1, " "));
		json_end(w, '}');
	}
	json_end(w, ']');
	return 0;
}

static int
write_request(
    struct execctl *ctl, struct json_writer *w, const struct buf *body)
{
	const struct parsed *p = ctl->parsed;
	const char *method = option(p, "method");
	uint64_t ms = 0;
	int code = take_duration(ctl, "timeout", UINT64_MAX, &ms);

	if (code != 0)
		return code;
	json_key_cstring(w, "method",
	    method		? method
	    : option(p, "data") ? "POST"
				: "GET");
	json_key_cstring(w, "url", p->arguments[0]);
	json_key_cstring(w, "requestId", "execctl");
	json_key_bool(w, "streamResponse", true);
	json_key_cstring(
	    w, "redirectPolicy", option(p, "no-redirect") ? "stop" : "follow");
	if (ms > 0)
		json_key_u64(w, "timeoutMs", ms);
	if (option(p, "data") != NULL) {
		json_key_base64(w, "bodyBase64", body->data, body->len);
	}
	return write_headers(ctl, w);
}

/* --- The answer --------------------------------------------------------- */

static void
print_head(
    struct execctl *ctl, struct exchange *x, const struct json_value *head)
{
	const struct json_value *headers = json_get(head, "headers");
	struct buf b;

	if (option(ctl->parsed, "include") == NULL)
		return;
	buf_init(&b, 1u << 20);
	buf_printf(&b, "status: %lld\n",
	    (long long)execd_json_number(json_get(head, "status"), 0));
	for (const struct json_value *v = execd_json_first(headers); v;
	     v = v->next) {
		const struct json_value *name = json_get(v, "name");
		const struct json_value *value = json_get(v, "value");

		if (name == NULL || value == NULL)
			continue;
		buf_put(&b, name->text.ptr, name->text.len);
		buf_puts(&b, ": ");
		buf_put(&b, value->text.ptr, value->text.len);
		buf_puts(&b, "\n");
	}
	buf_puts(&b, "\n");
	output_put(&x->out, b.data, b.len);
	buf_clear(&b);
}

static void
fail(struct exchange *x, const char *text, size_t len)
{
	x->failed = x->done = true;
	free(x->error);
	x->error = xstrndup(text, len);
}

static void
on_delta(void *arg, const char *method, const struct json_value *params)
{
	struct exchange *x = arg;
	const struct json_value *delta = json_get(params, "deltaBase64");
	const struct json_value *error = json_get(params, "error");
	char why[BASE64_ERROR_MAX];
	ssize_t n = 0;

	if (strcmp(method, "http/request/bodyDelta") != 0 || x->done)
		return;
	if (delta != NULL && delta->type == JSON_STRING) {
		_cleanup_free_ uint8_t *data =
		    xmalloc(base64_decoded_max(delta->text.len));

		n = base64_decode(data, delta->text.ptr, delta->text.len, why);
		if (n > 0 && x->answered)
			output_put(&x->out, data, (size_t)n);
		else if (n > 0)
			buf_put(&x->early, data, (size_t)n);
	}
	if (n < 0)
		fail(x, why, strlen(why));
	else if (error != NULL && error->type == JSON_STRING)
		fail(x, error->text.ptr, error->text.len);
	x->done |= execd_json_bool(json_get(params, "done"), false);
}

static int
take_answer(struct execctl *ctl, struct exchange *x, const struct reply *r)
{
	int64_t status = execd_json_number(json_get(r->result, "status"), 0);

	if (r->code != 0)
		return call_failed(ctl, r, "http");
	x->answered = true;
	print_head(ctl, x, r->result);
	output_put(&x->out, x->early.data, x->early.len);
	if (x->early.failed)
		fail(x, EARLY_TEXT, sizeof(EARLY_TEXT) - 1);
	while (!x->done && x->out.failed == 0 && loop_once(ctl) == 0)
		continue;
	output_drain(&x->out);
	if (execd_client_state(ctl->client) == EXECD_OVER)
		return execctl_over(ctl);
	if (x->out.failed < 0)
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "standard output: %s", strerror(-x->out.failed));
	if (x->failed)
		return execctl_fail(
		    ctl, EXIT_CTL_REFUSED, "http: body: %s", x->error);
	if (status >= 400)
		return execctl_fail(ctl, 1, "http: status %" PRId64, status);
	return 0;
}

int
cmd_http(struct execctl *ctl)
{
	const char *file = option(ctl->parsed, "data");
	struct exchange x = { 0 };
	struct json_text params;
	struct buf body;
	struct reply r = { 0 };
	int code = 0;

	buf_init(&body, BODY_MAX);
	buf_init(&x.early, EARLY_MAX);
	object_begin(&params);
	output_init(&x.out, ctl, STDOUT_FILENO, NULL, NULL);
	ctl->on_notification = on_delta;
	ctl->notification_arg = &x;
	if (file != NULL)
		code = read_body(ctl, file, &body);
	if (code == 0)
		code = write_request(ctl, &params.w, &body);
	if (code == 0)
		code = execctl_connect(ctl, NULL, false);
	if (code == 0) {
		call(ctl, "http/request", &params, 0, &r);
		code = take_answer(ctl, &x, &r);
		reply_clear(&r);
	}
	ctl->on_notification = NULL;
	ctl->notification_arg = NULL;
	output_clear(&x.out);
	free(x.error);
	buf_clear(&x.early);
	buf_clear(&body);
	buf_clear(&params.buf);
	return code;
}
