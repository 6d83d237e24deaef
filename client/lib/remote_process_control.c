/* SPDX-License-Identifier: ISC */
/*
 * Processes as the caller sees them: start, attach, input and signals.
 */
#include "base.h"
#include "capabilities.h"
#include "client.h"
#include "path_uri.h"
#include "utf8.h"

void
process_begin(const struct execd_process *p, struct json_text *t)
{
	calls_begin(t);
	json_key_cstring(&t->w, "processId", p->id);
}

static struct execd_process *
process_new(struct execd_client *c, char *id,
    const struct execd_process_events *events, void *arg)
{
	struct execd_process *p = xcalloc(1, sizeof(*p));

	p->client = c;
	p->id = id;
	p->events = *events;
	p->arg = arg;
	TAILQ_INIT(&p->held);
	TAILQ_INSERT_TAIL(&c->processes, p, link);
	return p;
}

void
execd_process_free(struct execd_process *p)
{
	if (p == NULL)
		return;
	p->events = (struct execd_process_events){ 0 };
	process_enter(p);
	process_fail(p, EXECD_CODE_LOST, "freed");
	calls_orphan(p);
	TAILQ_REMOVE(&p->client->processes, p, link);
	p->freed = true;
	process_leave(p);
}

const char *
execd_process_id(const struct execd_process *p)
{
	return p->id;
}

int64_t
execd_process_shm_bytes(const struct execd_process *p)
{
	return p->shm_bytes;
}

/* --- Start -------------------------------------------------------------- */

/* JSON carries only UTF-8; other bytes would arrive changed. */
static int
check_strings(const char *const *list, bool assignments)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++) {
		if (utf8_check(0, (const uint8_t *)list[i], strlen(list[i])))
			return -EILSEQ;
		if (assignments && strchr(list[i], '=') == NULL)
			return -EINVAL;
	}
	return 0;
}

static int
check_start(const struct execd_client *c, const struct execd_start *s)
{
	int err = check_strings(s->argv, false);

	if (err == 0)
		err = check_strings(s->env, true);
	if (err == 0)
		err = check_strings(s->allow_hosts, false);
	if (err == 0 && s->allow_hosts != NULL &&
	    !execd_client_can(c, CAN_NETWORK))
		err = -ENOTSUP;
	if (err == 0 && s->cwd != NULL && s->cwd[0] != '/')
		err = -EINVAL;
	if (err == 0 && s->timeout_ms != 0 && !execd_client_can(c, CAN_TIMEOUT))
		err = -ENOTSUP;
	return err;
}

static void
write_strings(struct json_writer *w, const char *const *list)
{
	json_begin(w, '[');
	for (size_t i = 0; list[i] != NULL; i++)
		json_cstring(w, list[i]);
	json_end(w, ']');
}

/* If a name is assigned twice, the last assignment counts. A JSON object may
 * hold each key only once. */
static bool
is_overridden(const char *const *list, size_t i)
{
	size_t n = strcspn(list[i], "=") + 1;

	for (size_t j = i + 1; list[j] != NULL; j++)
		if (strncmp(list[j], list[i], n) == 0)
			return true;
	return false;
}

static void
write_env(struct json_writer *w, const struct execd_start *s)
{
	bool term = false;

	json_key_begin(w, "env", '{');
	for (size_t i = 0; s->env != NULL && s->env[i] != NULL; i++) {
		const char *value = strchr(s->env[i], '=') + 1;
		struct slice name = { s->env[i],
			(size_t)(value - s->env[i]) - 1 };

		if (is_overridden(s->env, i))
			continue;
		term |= slice_equal(name, SLICE("TERM"));
		json_slice_key(w, name);
		json_cstring(w, value);
	}
	if (s->tty && s->term != NULL && !term)
		json_key_cstring(w, "TERM", s->term);
	json_end(w, '}');
}

static void
write_env_policy(struct json_writer *w, enum execd_inherit inherit)
{
	json_key_begin(w, "envPolicy", '{');
	json_key_cstring(
	    w, "inherit", inherit == EXECD_INHERIT_ALL ? "all" : "core");
	json_key_bool(w, "ignoreDefaultExcludes", true);
	json_key(w, "exclude");
	json_raw(w, "[]", 2);
	json_key(w, "set");
	json_raw(w, "{}", 2);
	json_key(w, "includeOnly");
	json_raw(w, "[]", 2);
	json_end(w, '}');
}

static void
write_cwd(struct json_writer *w, const struct execd_client *c, const char *cwd)
{
	const struct json_value *home =
	    json_get(execd_client_info(c), "userHomeDir");

	json_key(w, "cwd");
	if (cwd != NULL)
		json_path(w, cwd);
	else if (home != NULL && home->type == JSON_STRING)
		json_string(w, home->text.ptr, home->text.len);
	else
		json_cstring(w, "file:///");
}

static void
write_terminal(struct json_writer *w, const struct execd_client *c,
    const struct execd_start *s)
{
	json_key_bool(w, "tty", s->tty);
	if (s->tty && s->modes != NULL && execd_client_can(c, CAN_MODES))
		json_key_base64(w, "terminalModes", s->modes, s->modes_len);
	if (!s->tty || s->rows == 0 || s->cols == 0 ||
	    !execd_client_can(c, CAN_RESIZE))
		return;
	json_key_u64(w, "rows", s->rows);
	json_key_u64(w, "cols", s->cols);
}

static void
write_network(struct json_writer *w, const char *const *allow)
{
	json_key_begin(w, "network", '{');
	json_key(w, "allow");
	write_strings(w, allow);
	json_end(w, '}');
}

/* Tells whether a start has failed. When the request was repeated after a
 * resume, the first one may have arrived. */
static bool
has_failed(const struct execd_answer *a)
{
	return a->code != 0 &&
	       !(a->repeated && strstr(a->message, "already exists"));
}

/* Who passed the start on knows its answer only. */
static void
tell_answer(struct execd_process *p, const struct execd_answer *a)
{
	execd_answer_fn *fn = p->answered;
	struct execd_answer started = { 0 };
	struct json_doc doc = { 0 };
	struct json_text t;

	p->answered = NULL;
	if (a->code == 0 || has_failed(a)) {
		fn(p->answered_arg, a);
		return;
	}
	process_begin(p, &t);
	json_key_cstring(&t.w, "sandboxType", "unknown");
	json_end(&t.w, '}');
	if (json_parse(&doc, (const char *)t.buf.data, t.buf.len) == 0)
		started.result = doc.root;
	started.repeated = true;
	fn(p->answered_arg, &started);
	json_clear(&doc);
	buf_clear(&t.buf);
}

static void
start_answered(void *arg, const struct execd_answer *a)
{
	struct execd_process *p = arg;
	const struct json_value *type, *limits;
	_cleanup_free_ char *name = NULL;

	if (p->answered != NULL)
		tell_answer(p, a);
	if (p->ended)
		return;
	/* No other client uses this id, because it contains the handle's
	 * nonce, or this one has seen to it. */
	if (has_failed(a)) {
		process_fail(p, a->code, a->message);
		return;
	}
	p->started = true;
	if (p->pulls)
		process_read(p);
	limits = json_get(
	    json_get(json_get(a->result, "sandbox"), "enforced"), "limits");
	p->shm_bytes = execd_json_number(json_get(limits, "shmBytes"), 0);
	type = json_get(a->result, "sandboxType");
	if (type != NULL && type->type == JSON_STRING)
		name = xstrndup(type->text.ptr, type->text.len);
	if (p->events.started != NULL)
		p->events.started(p->arg, name ? name : "unknown");
}

static void
send_start(struct execd_process *p, const struct execd_start *s)
{
	struct json_text t;

	process_begin(p, &t);
	json_key(&t.w, "argv");
	write_strings(&t.w, s->argv);
	write_cwd(&t.w, p->client, s->cwd);
	write_env(&t.w, s);
	if (s->inherit != EXECD_INHERIT_NONE)
		write_env_policy(&t.w, s->inherit);
	write_terminal(&t.w, p->client, s);
	json_key_bool(&t.w, "pipeStdin", s->pipe_stdin);
	/* With startId the server gives a repeated start the same answer as the
	 * first time, however late it comes. */
	if (execd_client_can(p->client, CAN_START_ID))
		json_key_cstring(&t.w, "startId", p->id);
	if (s->timeout_ms != 0)
		json_key_u64(&t.w, "timeoutMs", s->timeout_ms);
	if (p->pulls || p->holds) {
		json_key_begin(&t.w, "retention", '{');
		json_key_bool(&t.w, p->pulls ? "wait" : "hold", true);
		json_end(&t.w, '}');
	}
	if (s->sandbox != NULL) {
		json_key(&t.w, "sandbox");
		json_raw(&t.w, s->sandbox, strlen(s->sandbox));
	}
	if (s->allow_hosts != NULL)
		write_network(&t.w, s->allow_hosts);
	calls_send(p, "process/start", &t, start_answered, p);
}

/* Connects if need be: the capabilities and the home directory are known only
 * after initialize. */
static bool
is_usable(struct execd_client *c)
{
	return (c->has_info || execd_client_connect(c) >= 0) &&
	       c->state != EXECD_OVER;
}

int
execd_process_start(struct execd_client *c, const struct execd_start *start,
    const struct execd_process_events *events, void *arg,
    struct execd_process **out)
{
	int err = is_usable(c) ? check_start(c, start) : -ENOTCONN;

	if (err < 0)
		return err;
	*out = process_new(c,
	    xasprintf("%s-%llu", c->nonce, (unsigned long long)c->next_id),
	    events, arg);
	(*out)->pulls =
	    start->wait_output && execd_client_can(c, CAN_RETENTION_WAIT);
	(*out)->holds = start->hold_output && !(*out)->pulls &&
			execd_client_can(c, CAN_RETENTION_HOLD);
	send_start(*out, start);
	return 0;
}

int
execd_process_forward(struct execd_client *c, const char *of, unsigned int port,
    const struct execd_process_events *events, void *arg,
    struct execd_process **out)
{
	struct json_text t;

	if (!is_usable(c))
		return -ENOTCONN;
	if (!execd_client_can(c, CAN_FORWARD))
		return -ENOTSUP;
	if (port < 1 || port > UINT16_MAX)
		return -EINVAL;
	*out = process_new(c,
	    xasprintf("%s-%llu", c->nonce, (unsigned long long)c->next_id),
	    events, arg);
	process_begin(*out, &t);
	json_key_u64(&t.w, "port", port);
	if (of != NULL)
		json_key_cstring(&t.w, "of", of);
	calls_send(*out, "process/forward", &t, start_answered, *out);
	return 0;
}

struct execd_process *
execd_process_pass(struct execd_client *c, const char *id, const char *params,
    size_t len, const struct execd_process_events *events, void *arg,
    execd_answer_fn *fn, void *fn_arg)
{
	struct execd_process *p = process_new(c, xstrdup(id), events, arg);

	p->answered = fn;
	p->answered_arg = fn_arg;
	execd_client_request(
	    c, "process/start", params, len, EXECD_REPEAT, start_answered, p);
	return p;
}

struct execd_process *
execd_process_attach(struct execd_client *c, const char *process_id,
    const struct execd_process_events *events, void *arg)
{
	struct execd_process *p =
	    process_new(c, xstrdup(process_id), events, arg);

	p->started = true;
	p->holds = !c->watching && execd_client_can(c, CAN_RETENTION_HOLD);
	process_read(p);
	return p;
}

/* --- Input and signals -------------------------------------------------- */

int
execd_process_write(struct execd_process *p, const void *data, size_t len,
    execd_answer_fn *fn, void *arg)
{
	char id[48];
	struct json_text t;

	if (len > EXECD_WRITE_MAX)
		return -EMSGSIZE;
	snprintf(id, sizeof(id), "%s-%llu", p->client->nonce,
	    (unsigned long long)++p->writes);
	process_begin(p, &t);
	json_key_base64(&t.w, "chunk", data, len);
	json_key_cstring(&t.w, "writeId", id);
	calls_send(p, "process/write", &t, fn, arg);
	return 0;
}

static void
ask(struct execd_process *p, const char *method, const char *more)
{
	struct json_text t;

	process_begin(p, &t);
	buf_puts(&t.buf, more);
	calls_send(p, method, &t, NULL, NULL);
}

int
execd_process_close_stdin(struct execd_process *p)
{
	if (!execd_client_can(p->client, CAN_CLOSE_STDIN))
		return -ENOTSUP;
	ask(p, "process/closeStdin", "");
	return 0;
}

int
execd_process_resize(
    struct execd_process *p, unsigned int rows, unsigned int cols)
{
	char more[64];

	if (!execd_client_can(p->client, CAN_RESIZE))
		return -ENOTSUP;
	snprintf(more, sizeof(more), ",\"rows\":%u,\"cols\":%u", rows, cols);
	ask(p, "process/resize", more);
	return 0;
}

int
execd_process_signal(struct execd_process *p, const char *name)
{
	char more[64];

	if (strcmp(name, "INT") == 0) {
		ask(p, "process/signal", ",\"signal\":\"interrupt\"");
		return 0;
	}
	if (!execd_client_can(p->client, CAN_SIGNAL_TARGET))
		return -ENOTSUP;
	if (strlen(name) > 10 || name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
						   "0123456789")] != '\0')
		return -EINVAL;
	snprintf(more, sizeof(more), ",\"signal\":\"%s\",\"target\":\"group\"",
	    name);
	ask(p, "process/signal", more);
	return 0;
}

int
execd_process_terminate(struct execd_process *p, unsigned int grace_ms)
{
	char more[64] = "";

	if (grace_ms > 0 &&
	    !execd_client_can(p->client, CAN_TERMINATE_GRACEFUL))
		return -ENOTSUP;
	if (grace_ms > 0)
		snprintf(more, sizeof(more),
		    ",\"mode\":\"graceful\",\"timeoutMs\":%u", grace_ms);
	ask(p, "process/terminate", more);
	return 0;
}
