/* SPDX-License-Identifier: ISC */
/*
 * A request of the operator: reads it, finds it in the table, records it, and
 * frames its answer.
 */
#include "ctl_request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "broker_state.h"
#include "conf.h"
#include "util.h"

int
ctl_refuse(struct ctl_request *r, const char *code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->message, sizeof(r->message), fmt, ap);
	va_end(ap);
	r->code = code;
	return -EINVAL;
}

void
ctl_write_error(struct buf *b, const char *code, const char *message)
{
	struct json_writer w;

	json_writer_init(&w, b);
	json_begin(&w, '{');
	json_key(&w, "error");
	json_begin(&w, '{');
	json_key_cstring(&w, "code", code);
	json_key_cstring(&w, "message", message);
	json_end(&w, '}');
	json_end(&w, '}');
	buf_puts(b, "\n");
}

static const struct ctl_command *
find_command(const char *name)
{
	const struct ctl_command *c = ctl_commands;

	while (c->name != NULL && strcmp(c->name, name) != 0)
		c++;
	return c->name != NULL ? c : NULL;
}

/* Takes a string that names something: it has no control characters and is not
 * too long. */
static int
take_string(struct ctl_request *r, const struct json_value *v, const char *key,
    char *dst, size_t size)
{
	if (v->type != JSON_STRING || v->text.len == 0 || v->text.len >= size)
		return ctl_refuse(r, "badRequest",
		    "%s: a string of 1 to %zu bytes is expected", key,
		    size - 1);
	for (size_t i = 0; i < v->text.len; i++)
		if ((unsigned char)v->text.ptr[i] < 0x20 ||
		    v->text.ptr[i] == 0x7f)
			return ctl_refuse(r, "badRequest",
			    "%s: a control character at byte %zu", key, i);
	memcpy(dst, v->text.ptr, v->text.len);
	dst[v->text.len] = '\0';
	return 0;
}

static int
take_member(struct ctl_request *r, const struct json_value *v, char *command)
{
	if (slice_equal(v->key, SLICE("command")))
		return take_string(r, v, "command", command, 32);
	if (slice_equal(v->key, SLICE("session")))
		return take_string(
		    r, v, "session", r->session, sizeof(r->session));
	if (slice_equal(v->key, SLICE("reason")))
		return take_string(
		    r, v, "reason", r->reason, sizeof(r->reason));
	return ctl_refuse(r, "badRequest", "unknown key `%.*s`",
	    (int)(v->key.len < 64 ? v->key.len : 64), v->key.ptr);
}

/* Checks that the request has exactly what its command takes. If it returns
 * NULL, r->code says why. */
static const struct ctl_command *
take_request(struct ctl_request *r, const struct json_value *root)
{
	static char command[32];
	const struct ctl_command *c;

	command[0] = '\0';
	if (root->type != JSON_OBJECT) {
		ctl_refuse(r, "badRequest", "a request is an object");
		return NULL;
	}
	for (const struct json_value *v = root->first; v != NULL; v = v->next)
		if (take_member(r, v, command) < 0)
			return NULL;
	r->command = command;
	c = find_command(command);
	if (c == NULL)
		ctl_refuse(r, "badRequest",
		    "command: `%s` is none of list, show, "
		    "kill, drain, undrain, status, reload",
		    command);
	else if (c->session != (r->session[0] != '\0'))
		ctl_refuse(r, "badRequest", "session: `%s` %s", command,
		    c->session ? "needs one" : "takes none");
	else if (c->reason != (r->reason[0] != '\0'))
		ctl_refuse(r, "badRequest", "reason: `%s` %s", command,
		    c->reason ? "needs one" : "takes none");
	return r->code == NULL ? c : NULL;
}

static void
record(const struct ctl_request *r)
{
	const struct ucred *who = &r->client->who;
	struct audit_event e;

	audit_begin(&e, "ctl-command");
	audit_string(&e, "command", r->command ? r->command : "");
	audit_number(&e, "uid", who->uid);
	audit_number(&e, "pid", (uint64_t)who->pid);
	if (r->session[0] != '\0')
		audit_string(&e, "target", r->session);
	if (r->reason[0] != '\0')
		audit_string(&e, "reason", r->reason);
	audit_string(&e, "result",
	    r->code			     ? r->code
	    : r->client->state == CTL_HANDED ? "asked"
					     : "done");
	audit_end(&e, &r->broker->conf->audit);
}

static void
run(const struct ctl_command *c, struct ctl_request *r)
{
	struct buf *out = &r->client->out;
	struct json_writer w;

	json_writer_init(&w, out);
	json_begin(&w, '{');
	json_key(&w, "result");
	json_begin(&w, '{');
	if (c->answer(r, &w) < 0 || r->client->state == CTL_HANDED) {
		out->len = 0;
	} else if (r->client->state == CTL_ANSWERING) {
		json_end(&w, '}');
		json_end(&w, '}');
		buf_puts(out, "\n");
	}
}

void
ctl_carry_out(
    struct broker *m, struct ctl_client *client, const char *line, size_t len)
{
	struct ctl_request r = { .broker = m, .client = client };
	const struct ctl_command *c = NULL;
	struct json_doc doc;

	if (json_parse(&doc, line, len) < 0)
		ctl_refuse(&r, "badRequest", "not JSON: %s", doc.error);
	else
		c = take_request(&r, doc.root);
	if (c != NULL)
		run(c, &r);
	record(&r);
	if (r.code != NULL)
		ctl_write_error(&client->out, r.code, r.message);
	json_clear(&doc);
}
