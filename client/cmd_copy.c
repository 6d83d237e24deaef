/*
 * execctl cp: which files go where. :PATH is the server's, NAME:PATH that of
 * a named server.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "copy.h"
#include "jsonrpc.h"
#include "server_path.h"

const struct option_row copy_options[] = {
	{ "recursive", 'r', NULL, "directories, and everything in them" },
	{ 0 },
};

/* Either all sources or the target are the server's. */
static int
check_sides(struct ctl *ctl, bool *to_server)
{
	const struct parsed *p = ctl->parsed;
	int last = p->narguments - 1, code = 0;

	*to_server = server_path_part(p->arguments[last]) != NULL;
	for (int i = 0; i < last; i++)
		if ((server_path_part(p->arguments[i]) != NULL) == *to_server)
			return ctl_fail(ctl, EXIT_CTL_USAGE,
			    *to_server
				? "cp: `%s' and the target are both the "
				  "server's; run cp(1) there"
				: "cp: `%s' and the target are both of this "
				  "machine; a path of the server begins with "
				  "a colon",
			    p->arguments[i]);
	for (int i = 0; i <= last && code == 0; i++)
		if (server_path_part(p->arguments[i]) != NULL)
			code = server_path_choose(ctl, p->arguments[i]);
	return code;
}

/* --- What is there? ----------------------------------------------------- */

enum kind { KIND_NONE, KIND_FILE, KIND_DIRECTORY, KIND_FAILED };

static enum kind
remote_kind(struct copy *c, const char *path, uint64_t *size)
{
	struct json_writer w;
	struct reply r;
	struct buf b;
	enum kind kind = KIND_FILE;

	params_path(&b, &w, "path", path);
	json_end(&w, '}');
	call(c->ctl, "fs/getMetadata", &b, EXECD_REPEAT, &r);
	if (r.code == RPC_NOT_FOUND)
		kind = KIND_NONE;
	else if (r.code != 0)
		kind = KIND_FAILED;
	else if (execd_json_bool(json_get(r.result, "isDirectory"), false))
		kind = KIND_DIRECTORY;
	if (kind == KIND_FAILED)
		copy_failed(c, path, r.message);
	*size = (uint64_t)execd_json_number(json_get(r.result, "size"), 0);
	reply_clear(&r);
	return kind;
}

static enum kind
local_kind(const char *path, uint64_t *size)
{
	struct stat st;

	*size = 0;
	if (stat(path, &st) < 0)
		return KIND_NONE;
	*size = (uint64_t)st.st_size;
	return S_ISDIR(st.st_mode) ? KIND_DIRECTORY : KIND_FILE;
}

/* The last name of a path: of "a/b/" it is b, of "." and "/" there is none. */
static char *
last_name(const char *path)
{
	size_t end = strlen(path), from;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (from = end; from > 0 && path[from - 1] != '/'; from--)
		continue;
	if ((end - from == 1 && path[from] == '.') ||
	    (end - from == 2 && strncmp(path + from, "..", 2) == 0))
		from = end;
	return xstrndup(path + from, end - from);
}

/* --- One source --------------------------------------------------------- */

struct target {
	const char *path;
	bool directory; /* it is there, and one */
};

static char *
full_target(const struct target *t, const char *source)
{
	_cleanup_free_ char *name = last_name(source);

	if (!t->directory || name[0] == '\0')
		return xstrdup(t->path);
	return xasprintf("%s%s%s", t->path,
	    t->path[strlen(t->path) - 1] == '/' ? "" : "/", name);
}

static void
copy_source(
    struct copy *c, const char *source, const struct target *t, bool only)
{
	_cleanup_free_ char *to = full_target(t, source);
	_cleanup_free_ char *from =
	    c->to_server ? xstrdup(source) : remote_path(c->ctl, source);
	uint64_t size = 0;
	enum kind kind = c->to_server ? local_kind(from, &size)
				      : remote_kind(c, from, &size);

	if (kind == KIND_NONE)
		copy_failed(c, source, strerror(ENOENT));
	if (kind == KIND_NONE || kind == KIND_FAILED)
		return;
	if (kind == KIND_DIRECTORY && !c->recursive) {
		copy_skipped(c, source, "it is a directory; -r copies those");
		return;
	}
	while (from[1] != '\0' && from[strlen(from) - 1] == '/')
		from[strlen(from) - 1] = '\0';
	if (kind == KIND_FILE)
		c->size = only ? size : 0;
	if (kind == KIND_FILE && c->to_server)
		copy_upload(c, from, to);
	else if (kind == KIND_FILE)
		copy_download(c, from, to);
	else if (c->to_server)
		copy_upload_tree(c, from, to);
	else
		copy_download_tree(c, from, to);
}

/* Several sources go into a directory, which must be there. */
static int
find_target(struct copy *c, struct target *t, int nsources)
{
	uint64_t ignored;
	enum kind kind = c->to_server ? remote_kind(c, t->path, &ignored)
				      : local_kind(t->path, &ignored);

	if (kind == KIND_FAILED)
		return c->code;
	t->directory = kind == KIND_DIRECTORY;
	if (nsources > 1 && !t->directory)
		return ctl_fail(c->ctl, EXIT_CTL_USAGE,
		    "cp: %s is no directory, and there are %d sources", t->path,
		    nsources);
	return 0;
}

static int
copy_all(struct copy *c)
{
	const struct parsed *p = c->ctl->parsed;
	int nsources = p->narguments - 1;
	const char *last = p->arguments[nsources];
	_cleanup_free_ char *path =
	    c->to_server ? remote_path(c->ctl, server_path_part(last))
			 : xstrdup(last);
	struct target t = { .path = path };
	int code = find_target(c, &t, nsources);

	if (code != 0)
		return code;
	for (int i = 0; i < nsources && !c->stop; i++) {
		const char *source = p->arguments[i];

		copy_source(c, c->to_server ? source : server_path_part(source),
		    &t, nsources == 1);
	}
	copy_wait(c, 0);
	return c->code;
}

static void
print_summary(const struct copy *c)
{
	if (c->ctl->json)
		printf("{\"files\":%" PRIu64 ",\"bytes\":%" PRIu64
		       ",\"failed\":%u,\"skipped\":%u}\n",
		    c->files, c->bytes, c->failed, c->skipped);
	else if (c->failed + c->skipped > 0)
		ctl_say("%" PRIu64 " files copied, %u failed, %u skipped",
		    c->files, c->failed, c->skipped);
}

int
cmd_cp(struct ctl *ctl)
{
	struct copy c = { .ctl = ctl,
		.recursive = option(ctl->parsed, "recursive") != NULL };
	int code = check_sides(ctl, &c.to_server);

	if (code == 0)
		code = copy_begin(&c);
	if (code == 0)
		code = ctl_connect(ctl, NULL, false);
	if (code != 0)
		return code;
	code = copy_all(&c);
	if (c.signal != 0) {
		copy_give_up(&c);
		ctl_say("interrupted; what was not complete was taken away");
		/* At once: answers that are still due are for files that are
		 * given up. */
		_exit(128 + c.signal);
	}
	if (execd_client_state(ctl->client) == EXECD_OVER)
		code = ctl_over(ctl);
	print_summary(&c);
	return code;
}
