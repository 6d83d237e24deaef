/* SPDX-License-Identifier: ISC */
/*
 * initialize and environment/info, environment/status (doc/protocol.md
 * sections 5.1, 5.5, 13).
 */
#include "base.h"
#include "config.h"
#include "environment.h"
#include "methods.h"
#include "path_uri.h"

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The version of codex exec-server whose protocol this is. Below 0.164.0 no
 * client of Codex calls capabilities/discoverV2. */
#define WIRE_VERSION "0.171.0"

/* Only what is available is listed. */
static void
write_capabilities(struct json_writer *w, struct session *s)
{
	static const char *const names[] = {
		/* of the peer */
		"fsWatchMissing",
		"httpHeaderEnvVars",
		"fileWriteStreaming",
		"sandboxedFileStreaming",
		"environmentConfigRead",
		"capabilityDiscoveryV2",
		"capabilityDiscoverySandbox",
		"linuxApprovedRootWritePreservesRestrictions",
		"linuxRootWritePreservesDevices",
		"shellSnapshotV2",
		/* of execd only */
		"processCloseStdin",
		"processResize",
		"processTerminalModes",
		"processWait",
		"processSnapshot",
		"processList",
		"processForward",
		"processSignalTarget",
		"processTerminateGraceful",
		"processTimeout",
		"processExitDetails",
		"processOutputGaps",
		"processRetention",
		"processRetentionWait",
		"processRetentionHold",
		"processStartId",
		"fsOpenAppend",
		"fsMove",
		"fsMoveKeep",
		"fsChmod",
		"fsSymlink",
		"fsSetTimes",
		"fsDetails",
		"fsWatch",
		"commandExec",
		"sessionWatch",
		"sessionEnd",
		"sessionKeep",
		"sessionList",
		"sessionTakeOver",
	};

	json_key_begin(w, "capabilities", '{');
	for (size_t i = 0; i < nitems(names); i++)
		json_key_bool(w, names[i], true);
	if (s->netproxy_program >= 0) {
		json_key_bool(w, "networkProxyLaunch", true);
		json_key_bool(w, "networkProxyReviewDomains", true);
		json_key_bool(w, "processNetwork", true);
	}
	if (session_redirects(s))
		json_key_bool(w, "networkProxyTransparentTcp", true);
	json_end(w, '}');
}

static void
write_paths(struct json_writer *w, struct session *s)
{
	const char *tmp = environment_get(s->env, "TMPDIR");
	_cleanup_free_ char *cwd = getcwd(NULL, 0);

	json_key(w, "cwd");
	if (cwd != NULL && cwd[0] == '/')
		json_path(w, cwd);
	else
		json_null(w);
	json_key_path(w, "userHomeDir", s->config.home);
	json_key_path(w, "tempDir", tmp && tmp[0] == '/' ? tmp : "/tmp");
	json_key(w, "temporaryDirectories");
	json_raw(w, "[]", 2);
	json_key(w, "prependPathDirs");
	json_raw(w, "[]", 2);
}

static void
write_environment(struct json_writer *w, struct session *s)
{
	json_key_begin(w, "shell", '{');
	json_key_cstring(w, "name", base_name(s->config.shell));
	json_key_cstring(w, "path", s->config.shell);
	json_end(w, '}');
	json_key_cstring(w, "executorVersion", WIRE_VERSION);
	json_key_cstring(w, "serverVersion", EXECD_VERSION);
	json_key_cstring(w, "providerId", s->config.provider_id);
	write_paths(w, s);
	json_key_cstring(w, "platformOs", "linux");
	write_capabilities(w, s);
}

/* A client that resumes its session is not turned away because the session
 * cannot be kept: the answer says so. */
static void
write_keep(struct json_writer *w, struct session *s, const char *refused)
{
	json_key_begin(w, "sessionKeep", '{');
	if (refused[0] == '\0') {
		keep_write(w, s);
	} else {
		json_key_begin(w, "error", '{');
		json_key_i64(w, "code", RPC_MALFORMED);
		json_key_cstring(w, "message", refused);
		json_end(w, '}');
	}
	json_end(w, '}');
}

int
method_initialize(struct request *r, const union method_params *p)
{
	const struct initialize_params *i = &p->initialize;
	struct session *s = r->session;
	char refused[256] = "";
	struct json_writer w;

	if (i->has_keep)
		keep_ask(s, i->keep.keep_ms, i->keep.while_running, refused);
	w = reply_begin(r->channel, &r->id);
	json_key_cstring(&w, "sessionId", s->config.session_id);
	json_key_begin(&w, "environmentInfo", '{');
	write_environment(&w, s);
	json_end(&w, '}');
	json_key_cstring(&w, "protocolVersion", "exec-server.v0");
	if (r->client->watching)
		json_key_bool(&w, "watching", true);
	else if (!r->client->stdio)
		json_key_u64(&w, "detachedTtl", s->config.detached_ttl_ms);
	if (i->has_keep || s->keep.max_ms > 0)
		write_keep(&w, s, refused);
	reply_end(r->channel, &w);
	r->client->state = SESSION_INITIALIZED;
	return 0;
}

int
method_environment_info(struct request *r, const union method_params *p)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	write_environment(&w, r->session);
	reply_end(r->channel, &w);
	return 0;
}

int
method_environment_status(struct request *r, const union method_params *p)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_cstring(&w, "status", "ready");
	reply_end(r->channel, &w);
	return 0;
}

/* The broker ends sessions: it is asked to end this one, and then commands it.
 */
int
method_session_end(struct request *r, const union method_params *p)
{
	int err = reply_empty(r);

	r->session->report(RUNNER_EVENT_END, NULL);
	return err;
}

int
method_session_keep(struct request *r, const union method_params *p)
{
	const struct session_keep_params *k = &p->session_keep;
	struct json_writer w;
	char reason[256];

	if (!keep_ask(r->session, k->keep_ms, k->while_running, reason))
		return reply_error(
		    r->channel, &r->id, RPC_MALFORMED, "%s", reason);
	w = reply_begin(r->channel, &r->id);
	keep_write(&w, r->session);
	reply_end(r->channel, &w);
	return 0;
}

/* --- session/list -------------------------------------------------------- */

static void
write_known(struct json_writer *w, const char *key, uint64_t value)
{
	json_key(w, key);
	if (value == CONTROL_NONE)
		json_null(w);
	else
		json_u64(w, value);
}

static void
write_listed(struct json_writer *w, const struct control_listed *l)
{
	bool attached = l->detached_ms == CONTROL_NONE;

	json_begin(w, '{');
	json_key_string(w, "sessionId", l->session_id,
	    strnlen(l->session_id, sizeof(l->session_id)));
	json_key_cstring(w, "state", attached ? "attached" : "detached");
	json_key_string(w, "peer", l->peer, strnlen(l->peer, sizeof(l->peer)));
	json_key_u64(w, "ageMs", l->age_ms);
	write_known(w, "detachedMs", l->detached_ms);
	write_known(w, "endsInMs", l->ends_in_ms);
	write_known(w, "keepMs", l->keep_ms);
	json_key_bool(w, "whileRunning", l->keeps_running != 0);
	write_known(w, "commands", l->commands);
	json_key_u64(w, "watchers", l->watchers);
	json_end(w, '}');
}

/* If the list is too long for one answer, `next` says where to continue. */
int
method_session_list(struct request *r, const union method_params *p)
{
	static uint32_t questions;
	static struct control_list list;
	const struct control_list_wanted wanted = { .number = ++questions,
		.after = p->session_list.after };
	struct json_writer w;

	r->session->ask_list(&wanted, &list);
	w = reply_begin(r->channel, &r->id);
	json_key_begin(&w, "sessions", '[');
	for (uint32_t i = 0; i < list.count; i++)
		write_listed(&w, &list.sessions[i]);
	json_end(&w, ']');
	write_known(&w, "next",
	    list.more && list.count > 0 ? list.sessions[list.count - 1].number
					: CONTROL_NONE);
	json_key_bool(&w, "incomplete", list.incomplete);
	reply_end(r->channel, &w);
	return 0;
}
