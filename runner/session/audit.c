/* SPDX-License-Identifier: ISC */
#include "audit.h"

#include "report.h"
#include "rpc_method.h"
#include "siphash.h"

/* A command can make any number of connections, and names to connect to. What
 * is beyond this is counted, and the next record says how many there were. */
#define NETWORK_RECORDS_PER_SECOND 20

void
audit_begin(struct session *s, const struct control_audit *wanted)
{
	struct record *r = xcalloc(1, sizeof(*r));

	r->wanted = *wanted;
	redact_rules_init(
	    &r->rules, r->wanted.redact_names, r->wanted.redact_values);
	rate_init(&r->network_rate, NETWORK_RECORDS_PER_SECOND, now_ms());
	s->record = r;
}

bool
audit_permits(struct request *r)
{
	const struct record *record = r->session->record;

	if (record == NULL || !record->fails)
		return true;
	reply_error(r->channel, &r->id, RPC_INTERNAL,
	    "the audit log cannot be written");
	return false;
}

static bool
is_plain(struct slice word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";

	for (size_t i = 0; i < word.len; i++)
		if (strchr(plain, word.ptr[i]) == NULL)
			return false;
	return word.len > 0;
}

/* Quotes the word so that a shell reads it as it was. */
static void
put_word(struct buf *b, struct slice word)
{
	if (is_plain(word)) {
		buf_put(b, word.ptr, word.len);
		return;
	}
	buf_puts(b, "'");
	for (size_t i = 0; i < word.len; i++) {
		if (word.ptr[i] == '\'')
			buf_puts(b, "'\\''");
		else
			buf_put(b, word.ptr + i, 1);
	}
	buf_puts(b, "'");
}

unsigned
audit_command(
    const struct session *s, char *const argv[], char *text, bool *cut)
{
	static const struct redact_rules built_in;
	const struct redact_rules *rules =
	    s->record != NULL ? &s->record->rules : &built_in;
	struct redact_state state = { 0 };
	struct buf b, word;

	*cut = false;
	buf_init(&b, CONTROL_COMMAND_MAX - 1);
	for (size_t i = 0; argv[i] != NULL && !*cut; i++) {
		buf_init(&word, CONTROL_COMMAND_MAX - 1);
		redact_word(&state, rules,
		    (struct slice){ argv[i], strlen(argv[i]) }, &word);
		if (i > 0)
			buf_puts(&b, " ");
		put_word(&b, (struct slice){ (char *)word.data, word.len });
		*cut = b.failed || word.failed;
		buf_clear(&word);
	}
	audit_copy(text, CONTROL_COMMAND_MAX,
	    (struct slice){ b.len > 0 ? (char *)b.data : "", b.len });
	buf_clear(&b);
	return state.count;
}

static void
put_policy(
    struct control_started *started, const struct sandbox_report *sandbox)
{
	started->asked = (struct control_policy){ .there = sandbox->asked,
		.type = (uint8_t)sandbox->asked_type,
		.files = sandbox->asked_files,
		.network =
		    sandbox->asked_network ? REACH_RESTRICTED : REACH_ENABLED };
	started->enforced = (struct control_policy){ .there = sandbox->enforced,
		.files = sandbox->files,
		.network = (uint8_t)sandbox_report_reach(sandbox) };
	started->landlock_abi = sandbox->landlock_abi;
	started->landlock_only = sandbox->landlock_only;
}

void
audit_started(const struct session_process *p, char *const argv[],
    const char *cwd, int64_t began_us)
{
	const struct session *s = p->session;
	struct control_started started = {
		.pid = (uint32_t)p->process.leader,
		.sandboxed = p->process.sandboxed,
		.tty = p->process.tty,
	};
	int64_t us;

	us = now_us() - began_us;
	started.start_us = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
	audit_copy_id(started.process, (struct slice){ p->id, p->id_len });
	started.cwd_cut =
	    audit_copy(started.cwd, sizeof(started.cwd), slice_of(cwd));
	started.redacted =
	    audit_command(s, argv, started.command, &started.command_cut);
	put_policy(&started, &p->sandbox);
	s->report(RUNNER_EVENT_STARTED, &started);
}

void
audit_end_unrecorded(struct session *s, const char *process)
{
	char id[CONTROL_PROCESS_MAX];
	struct session_process *p;

	TAILQ_FOREACH (p, &s->started, link) {
		audit_copy_id(id, (struct slice){ p->id, p->id_len });
		if (p->orphaned || strcmp(id, process) != 0)
			continue;
		log_warn(0, "a command is ended: its start could not be "
			    "recorded");
		p->unrecorded = true;
		process_kill_tree(&p->process);
		return;
	}
}

void
audit_exited(struct session_process *p)
{
	const struct session *s = p->session;
	int status = p->process.wait_status;
	struct control_exited exited = {
		.signal = WIFSIGNALED(status) ? (uint32_t)WTERMSIG(status) : 0,
		.code = WIFEXITED(status) ? (uint32_t)WEXITSTATUS(status) : 0,
		.terminated = p->process.terminated,
		.denied = p->process.state.sandbox_denied,
		.cause = (uint8_t)end_cause(p),
		.output_bytes = p->process.state.output_bytes,
		.duration_ms = (uint64_t)(now_ms() - p->started_mono_ms),
		.user_ms = ms_of_timeval(&p->process.usage.ru_utime),
		.system_ms = ms_of_timeval(&p->process.usage.ru_stime),
		.max_rss_bytes = (uint64_t)p->process.usage.ru_maxrss << 10,
		.memory_kills = p->process.counts.memory_kills,
		.forks_denied = p->process.counts.forks_denied,
	};

	if (s->record == NULL)
		return;
	audit_copy_id(exited.process, (struct slice){ p->id, p->id_len });
	s->report(RUNNER_EVENT_EXITED, &exited);
}

void
audit_limited(const struct session_process *p, const char *limit)
{
	struct control_limited limited;

	if (p->session->record == NULL)
		return;
	audit_copy_id(limited.process, (struct slice){ p->id, p->id_len });
	snprintf(limited.limit, sizeof(limited.limit), "%s", limit);
	p->session->report(RUNNER_EVENT_LIMITED, &limited);
}

/* --- networks ----------------------------------------------------------- */

/* The hash has a key that no command knows. */
static bool
is_known(struct network_recorded *known, const struct netproxy_decided *d)
{
	struct buf b;
	uint64_t hash;

	buf_init(&b, 1024);
	buf_printf(&b, "%d%d %d %s %u %s", d->allowed, d->reason,
	    d->target.protocol, d->target.host, d->target.port, d->rule);
	hash = siphash_bytes(b.data, b.len);
	buf_clear(&b);
	for (unsigned i = 0; i < nitems(known->hashes); i++)
		if (known->hashes[i] == hash)
			return true;
	known->hashes[known->n++ % nitems(known->hashes)] = hash;
	return false;
}

/* Tells whether the decision is only counted. */
static bool
is_only_counted(struct record *r, struct control_network *told,
    struct network_recorded *known, const struct netproxy_decided *d)
{
	int64_t now = now_ms();

	if (is_known(known, d))
		return true;
	if (!rate_permits(&r->network_rate, now)) {
		r->network_unrecorded++;
		return true;
	}
	rate_spend(&r->network_rate, 1);
	told->unrecorded = r->network_unrecorded;
	r->network_unrecorded = 0;
	return false;
}

static void
report_network(const struct session *s, struct slice process,
    struct network_recorded *known, const struct netproxy_decided *d)
{
	struct control_network told = {
		.port = d->target.port,
		.protocol = (uint8_t)d->target.protocol,
		.source = (uint8_t)d->source,
		.reason = (uint8_t)d->reason,
		.allowed = d->allowed,
	};

	audit_copy_id(told.process, process);
	snprintf(told.host, sizeof(told.host), "%s", d->target.host);
	snprintf(told.rule, sizeof(told.rule), "%s", d->rule);
	told.counted = is_only_counted(s->record, &told, known, d);
	s->report(RUNNER_EVENT_NETWORK, &told);
}

void
audit_network(const struct session_process *p, const struct netproxy_decided *d)
{
	if (p->session->record != NULL)
		report_network(p->session, (struct slice){ p->id, p->id_len },
		    &p->network->recorded, d);
}

void
audit_request_network(struct session *s, const struct netproxy_decided *d)
{
	if (s->record != NULL)
		report_network(
		    s, (struct slice){ "", 0 }, &s->record->requests, d);
}

/* --- requests ----------------------------------------------------------- */

/* Blocks of an open file are not recorded; its fs/open is. */
static bool
is_recorded(const struct record *r, const struct rpc_method *m,
    const struct fs_params *p)
{
	if (m->family != FAMILY_FILESYSTEM || m->use == FILE_HANDLE ||
	    m->use == FILE_CLOSES)
		return false;
	return r->wanted.files == AUDIT_FILES_ALL || m->use == FILE_CHANGES ||
	       p->replace;
}

bool
audit_wants_files(const struct session *s)
{
	return s->record != NULL && s->record->wanted.files != AUDIT_FILES_NONE;
}

static bool
copy_path(char *to, size_t cap, const char *path)
{
	return path != NULL && audit_copy(to, cap, slice_of(path));
}

bool
audit_file(struct request *r, const struct rpc_method *method,
    const struct fs_params *p, bool sandboxed)
{
	const struct session *s = r->session;
	struct control_file file = { .sandboxed = sandboxed };
	size_t room = sizeof(file.path);

	if (!audit_wants_files(s) || !is_recorded(s->record, method, p))
		return true;
	if (!audit_permits(r))
		return false;
	audit_copy(
	    file.operation, sizeof(file.operation), slice_of(method->name));
	file.cut = copy_path(file.path, room, p->path.path);
	if (p->target.len > 0)
		file.cut |= audit_copy(file.destination, room, p->target);
	else
		file.cut |=
		    copy_path(file.destination, room, p->destination.path);
	s->report(RUNNER_EVENT_FILE, &file);
	return true;
}

/* A NUL would end the text for the reader of the record. */
static struct slice
before_nul(struct slice s)
{
	return (struct slice){ s.ptr, strnlen(s.ptr, s.len) };
}

bool
audit_http(struct request *r, const struct http_request_params *p)
{
	const struct session *s = r->session;
	struct slice shown = before_nul(p->url);
	struct redact_state state = { 0 };
	struct control_http http = { 0 };
	struct buf url;

	if (!audit_wants_files(s))
		return true;
	if (!audit_permits(r))
		return false;
	http.method_cut =
	    audit_copy(http.method, sizeof(http.method), p->method);
	buf_init(&url, sizeof(http.url) - 1);
	redact_word(&state, &s->record->rules, shown, &url);
	http.url_cut = url.failed || shown.len < p->url.len;
	http.redacted = state.count;
	if (url.len > 0)
		memcpy(http.url, url.data, url.len);
	buf_clear(&url);
	s->report(RUNNER_EVENT_HTTP, &http);
	return true;
}
