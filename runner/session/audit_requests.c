/* SPDX-License-Identifier: ISC */
/* Reports of operations on files and of HTTP requests to the broker. */
#include <string.h>

#include "audit.h"
#include "audit_text.h"
#include "request.h"
#include "rpc_method.h"
#include "session.h"
#include "util.h"

/*
 * The operations that are recorded, and whether they write. fs/open writes when
 * its mode is `replace`. Blocks of an open file are not recorded; its fs/open
 * is.
 */
static const struct operation {
	const char *name;
	bool writes;
} operations[] = {
	{ "fs/writeFile", true },
	{ "fs/createDirectory", true },
	{ "fs/remove", true },
	{ "fs/copy", true },
	{ "fs/move", true },
	{ "fs/chmod", true },
	{ "fs/symlink", true },
	{ "fs/setTimes", true },
	{ "fs/open", false },
	{ "fs/readFile", false },
	{ "fs/getMetadata", false },
	{ "fs/canonicalize", false },
	{ "fs/readDirectory", false },
	{ "fs/walk", false },
	{ "fs/watch", false },
};

static bool
is_recorded(const struct record *r, const char *name, const struct fs_params *p)
{
	for (size_t i = 0; i < nitems(operations); i++)
		if (strcmp(operations[i].name, name) == 0)
			return r->wanted.files == AUDIT_FILES_ALL ||
			       operations[i].writes || p->replace;
	return false;
}

bool
audit_wants_files(const struct session *s)
{
	return s->record != NULL && s->record->wanted.files != AUDIT_FILES_NONE;
}

static bool
copy_path(char *to, size_t cap, const char *path)
{
	return path != NULL &&
	       audit_copy(to, cap, (struct slice){ path, strlen(path) });
}

bool
audit_file(struct request *r, const struct rpc_method *method,
    const struct fs_params *p, bool sandboxed)
{
	const struct session *s = r->session;
	struct control_file file = { .sandboxed = sandboxed };
	size_t room = sizeof(file.path);

	if (!audit_wants_files(s) || !is_recorded(s->record, method->name, p))
		return true;
	if (!audit_permits(r))
		return false;
	audit_copy(file.operation, sizeof(file.operation),
	    (struct slice){ method->name, strlen(method->name) });
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
