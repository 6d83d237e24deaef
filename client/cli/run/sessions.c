/* SPDX-License-Identifier: ISC */
/*
 * Which sessions the server has, and which commands a session.
 */
#include "base.h"
#include "capabilities.h"
#include "run.h"

static char *
copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

void
execctl_beside(struct execctl *to, const struct execctl *ctl)
{
	const struct execd_environment *e = &ctl->environment;

	execctl_init(to, ctl->parsed);
	to->quiet = true;
	to->cookie = ctl->cookie;
	to->environment = (struct execd_environment){ .name = copy(e->name),
		.url = copy(e->url),
		.token = copy(e->token),
		.ca_file = copy(e->ca_file),
		.certificate_file = copy(e->certificate_file),
		.key_file = copy(e->key_file),
		.server_key = copy(e->server_key),
		.connect_timeout_ms = e->connect_timeout_ms,
		.initialize_timeout_ms = e->initialize_timeout_ms,
		.silence_timeout_ms = e->silence_timeout_ms };
}

/* --- pages --------------------------------------------------------------- */

/* Asks for the pages of a list, and visits what is in them. Returns 0, or an
 * exit status after a message. */
static int
each_entry(struct execctl *ctl, const char *method, const char *list,
    bool (*visit)(void *arg, const struct json_value *entry), void *arg,
    bool *incomplete)
{
	const struct json_value *v;
	struct json_text params;
	int64_t after = 0;
	struct reply r;
	int code = 0;

	do {
		object_begin(&params);
		json_key_i64(&params.w, "after", after);
		call(ctl, method, &params, EXECD_REPEAT, &r);
		if (r.code != 0)
			code = call_failed(ctl, &r, method);
		v = execd_json_first(json_get(r.result, list));
		while (v != NULL && visit(arg, v))
			v = execd_json_next(v);
		after = execd_json_number(json_get(r.result, "next"), 0);
		*incomplete |=
		    execd_json_bool(json_get(r.result, "incomplete"), false);
		reply_clear(&r);
	} while (code == 0 && after > 0);
	return code;
}

int
sessions_each(struct execctl *ctl,
    bool (*visit)(void *arg, const struct json_value *session), void *arg,
    bool *incomplete)
{
	*incomplete = false;
	if (!execd_client_can(ctl->client, CAN_LIST_SESSIONS))
		return -ENOTSUP;
	return each_entry(
	    ctl, "session/list", "sessions", visit, arg, incomplete);
}

/* --- one session --------------------------------------------------------- */

struct holder {
	const char *session;
	char *peer;
	size_t cap;
	bool found;
};

static bool
find_holder(void *arg, const struct json_value *v)
{
	struct holder *h = arg;

	if (!json_is(json_get(v, "sessionId"), h->session))
		return true;
	h->found = json_is(json_get(v, "state"), "attached");
	value_string(json_get(v, "peer"), h->peer, h->cap);
	return false;
}

bool
session_holder(struct execctl *ctl, const char *session, char *peer, size_t cap)
{
	struct holder h = { session, peer, cap, false };
	struct execctl beside;
	bool incomplete;

	peer[0] = '\0';
	execctl_beside(&beside, ctl);
	if (execctl_open(&beside, session, true) == 0)
		sessions_each(&beside, find_holder, &h, &incomplete);
	execctl_clear(&beside);
	return h.found;
}

struct search {
	const char *prefix, *own;
	char *session;
	size_t found;
};

static bool
match(void *arg, const struct json_value *v)
{
	struct search *s = arg;
	size_t n = 0;
	const char *id = execd_json_string(json_get(v, "sessionId"), &n);

	if (id == NULL || n < strlen(s->prefix) ||
	    strncmp(id, s->prefix, strlen(s->prefix)) != 0 ||
	    (n == strlen(s->own) && strncmp(id, s->own, n) == 0))
		return true;
	if (s->found++ == 0)
		s->session = xstrndup(id, n);
	return true;
}

static int
search_failed(struct execctl *ctl, const struct search *s, int err)
{
	if (err == -ENOTSUP)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "there is no record of a session `%s' (execctl ps lists "
		    "them), and the server does not list its sessions; "
		    "without a record, the whole id and --process are needed",
		    s->prefix);
	if (err != 0)
		return err;
	return execctl_fail(ctl, EXIT_CTL_USAGE,
	    s->found == 0 ? "there is no record of a session `%s', and the "
			    "server has none that begins so"
			  : "more than one session begins with `%s'",
	    s->prefix);
}

int
session_find(struct execctl *ctl, const char *prefix, char **session)
{
	struct search s = { .prefix = prefix };
	struct execctl beside;
	bool incomplete;
	int err;

	execctl_beside(&beside, ctl);
	err = execctl_connect(&beside, NULL, false);
	if (err == 0) {
		s.own = execd_client_session(beside.client);
		err = sessions_each(&beside, match, &s, &incomplete);
	}
	execctl_clear(&beside);
	if (err == 0 && s.found == 1) {
		*session = s.session;
		return 0;
	}
	free(s.session);
	return err > 0 ? err : search_failed(ctl, &s, err);
}

/* --- its commands -------------------------------------------------------- */

struct newest {
	char *process;
	bool tty;
};

/* They come in the order of their start. */
static bool
note_newest(void *arg, const struct json_value *v)
{
	struct newest *found = arg;
	size_t n = 0;
	const char *id = execd_json_string(json_get(v, "processId"), &n);

	if (id == NULL)
		return true;
	free(found->process);
	found->process = xstrndup(id, n);
	found->tty = execd_json_bool(json_get(v, "tty"), false);
	return true;
}

int
session_newest_process(struct execctl *ctl, char **process, bool *tty)
{
	struct newest found = { .process = NULL };
	bool incomplete = false;
	int code;

	if (!execd_client_can(ctl->client, CAN_LIST_PROCESSES))
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "the server does not list the commands of a session: "
		    "--process is needed");
	code = each_entry(
	    ctl, "process/list", "processes", note_newest, &found, &incomplete);
	if (code == 0 && found.process == NULL)
		code = execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "the session has no command, or none any more");
	if (code != 0) {
		free(found.process);
		return code;
	}
	*process = found.process;
	*tty = found.tty;
	return 0;
}
