/* SPDX-License-Identifier: ISC */
/*
 * execctl cp: decides which file goes where. :PATH is on the server, NAME:PATH
 * on a named server.
 */

#include "base.h"
#include "cmd.h"
#include "copy.h"
#include "jsonrpc.h"

const struct option_row copy_options[] = {
	{ "recursive", 'r', NULL,
	    "directories, and everything in them (also -R)", .also = 'R' },
	{ "preserve", 'p', NULL, "keep modes and times of modification" },
	{ "archive", 'a', NULL, "both: -r and -p" },
	FILES_SANDBOX_OPTIONS,
	{ 0 },
};

static bool
is_same_server(const char *a, const char *b)
{
	ptrdiff_t len = server_path_part(a) - a;

	return len == server_path_part(b) - b && strncmp(a, b, len) == 0;
}

/* Either all sources or the target must be on the server. */
static int
check_sides(struct execctl *ctl, bool *to_server)
{
	const struct parsed *p = ctl->parsed;
	int last = p->narguments - 1, code = 0;

	*to_server = server_path_part(p->arguments[last]) != NULL;
	for (int i = 0; i < last; i++)
		if ((server_path_part(p->arguments[i]) != NULL) == *to_server)
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    *to_server && !is_same_server(p->arguments[i],
					      p->arguments[last])
				? "cp: `%s' and the target are on two "
				  "servers; copy to this machine first, and "
				  "from here to the other server"
			    : *to_server
				? "cp: `%s' and the target are both on the "
				  "server; run cp(1) there"
				: "cp: `%s' and the target are both on this "
				  "machine; a path on the server begins with "
				  "a colon",
			    p->arguments[i]);
	for (int i = 0; i <= last && code == 0; i++)
		if (server_path_part(p->arguments[i]) != NULL)
			code = server_path_choose(ctl, p->arguments[i]);
	return code;
}

/* --- What is there? ----------------------------------------------------- */

enum kind { KIND_NONE, KIND_FILE, KIND_DIRECTORY, KIND_FAILED };

/* A link that leads nowhere counts as missing. */
static bool
is_dangling(const struct reply *r)
{
	return r->code == 0 &&
	       execd_json_bool(json_get(r->result, "isSymlink"), false) &&
	       json_get(r->result, "linkTarget") != NULL &&
	       !execd_json_bool(json_get(r->result, "isFile"), false) &&
	       !execd_json_bool(json_get(r->result, "isDirectory"), false);
}

static enum kind
remote_kind(
    struct copy *c, const char *path, uint64_t *size, struct facts *facts)
{
	struct reply r;
	struct json_text t;
	enum kind kind = KIND_FILE;

	params_begin(&t, "path", path);
	json_key_bool(&t.w, "details", true);
	call(c->ctl, "fs/getMetadata", &t, EXECD_REPEAT, &r);
	facts_of_remote(facts, r.code == 0 ? r.result : NULL);
	if (r.code == RPC_NOT_FOUND || is_dangling(&r))
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

/* Returns the last name of a path: b for "a/b/", "" for "." and "/". The caller
 * frees it. */
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

/* --- A source that is no file ------------------------------------------- */

/* A file whose name is gone again. */
static int
temporary_file(const char *dir)
{
	_cleanup_free_ char *name = xasprintf("%s/execctl-XXXXXX", dir);
	int fd = mkostemp(name, O_CLOEXEC);

	if (fd < 0)
		return -errno;
	unlink(name);
	return fd;
}

static int
read_all_into(int from, int to)
{
	char data[65536];
	ssize_t n;
	int err;

	while ((n = read(from, data, sizeof(data))) > 0)
		if ((err = write_piece(to, data, (size_t)n)) < 0)
			return err;
	return n < 0 ? -errno : 0;
}

/*
 * A pipe or a device that was named is read to its end, as by cp(1), and copied
 * when its size is known: blocks that are lost with the connection are sent
 * again. Returns a file, or -errno with in *where what that is about.
 */
static int
spool(const char *path, const char **where)
{
	const char *dir = getenv("TMPDIR");
	_cleanup_close_ int from = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC),
			    to = -1;
	int err;

	*where = path;
	if (from < 0)
		return -errno;
	*where = dir != NULL ? dir : "/tmp";
	to = temporary_file(*where);
	err = to < 0 ? to : read_all_into(from, to);
	return err < 0 ? err : steal_fd(&to);
}

/* Before the connection, and while ^C ends execctl as it is: nothing is done
 * yet, and whoever writes into a pipe may take his time. */
static int
spool_sources(struct copy *c)
{
	const struct parsed *p = c->ctl->parsed;

	c->spooled = xcalloc((size_t)p->narguments, sizeof(*c->spooled));
	for (int i = 0; i < p->narguments - 1; i++) {
		const char *where;
		struct stat st;

		c->spooled[i] = -1;
		if (!c->to_server || stat(p->arguments[i], &st) < 0 ||
		    S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
			continue;
		c->spooled[i] = spool(p->arguments[i], &where);
		if (c->spooled[i] < 0)
			return execctl_fail(c->ctl, EXIT_CTL_REFUSED,
			    "cp: %s: %s: %s; nothing was copied",
			    p->arguments[i], where, strerror(-c->spooled[i]));
	}
	return 0;
}

/* --- One source --------------------------------------------------------- */

struct target {
	const char *path;
	bool directory; /* an existing directory */
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

/* If the target is a link to a file, the file is replaced and the link stays.
 * A link of /proc can lead to what has no name, and that is written into. */
static void
download_file(
    struct copy *c, const char *from, const char *to, const struct facts *facts)
{
	_cleanup_free_ char *real = realpath(to, NULL), *why = NULL;
	struct stat st;

	if (stat(to, &st) == 0 && !S_ISDIR(st.st_mode) &&
	    (!S_ISREG(st.st_mode) || real == NULL)) {
		copy_download_into(c, from, to);
	} else if (real == NULL && lstat(to, &st) == 0) {
		why = xasprintf("to %s: it is a link that leads nowhere", to);
		copy_failed(c, from, why);
	} else {
		copy_download(c, from, real != NULL ? real : to, facts);
	}
}

static void
copy_source(
    struct copy *c, const char *source, const struct target *t, bool only)
{
	_cleanup_free_ char *to = full_target(t, source);
	_cleanup_free_ char *from =
	    c->to_server ? xstrdup(source) : remote_path(c->ctl, source);
	struct facts facts = { 0 };
	uint64_t size = 0;
	enum kind kind = c->to_server ? local_kind(from, &size)
				      : remote_kind(c, from, &size, &facts);

	if (kind == KIND_NONE)
		copy_failed(c, source,
		    !c->to_server && strpbrk(source, "*?[") != NULL
			? "No such file or directory; patterns of the server's "
			  "names are not expanded"
			: strerror(ENOENT));
	if (kind == KIND_NONE || kind == KIND_FAILED)
		return;
	if (kind == KIND_DIRECTORY && !c->recursive) {
		copy_skipped(c, source,
		    "it is a directory; -r copies "
		    "directories");
		return;
	}
	while (from[1] != '\0' && from[strlen(from) - 1] == '/')
		from[strlen(from) - 1] = '\0';
	c->in_tree = kind == KIND_DIRECTORY;
	if (kind == KIND_FILE)
		c->size = only ? size : 0;
	if (kind == KIND_FILE && c->to_server)
		copy_upload(c, from, to);
	else if (kind == KIND_FILE)
		download_file(c, from, to, &facts);
	else if (c->to_server)
		copy_upload_tree(c, from, to);
	else
		copy_download_tree(c, from, to, &facts);
}

static enum kind
kind_of(struct copy *c, const char *path)
{
	struct facts facts;
	uint64_t size;

	return c->to_server ? remote_kind(c, path, &size, &facts)
			    : local_kind(path, &size);
}

/* A new name needs an existing parent directory. "NAME/" counts as a new name
 * only with -r; otherwise NAME itself must be a directory. */
static int
check_parent(struct copy *c, const char *path)
{
	_cleanup_free_ char *parent = xstrdup(path);
	size_t len = strlen(parent);
	char *slash;
	enum kind kind;

	while (c->recursive && len > 1 && parent[len - 1] == '/')
		parent[--len] = '\0';
	slash = strrchr(parent, '/');
	if (slash == NULL || slash == parent)
		return 0;
	*slash = '\0';
	kind = kind_of(c, parent);
	if (kind != KIND_NONE && kind != KIND_FILE)
		return 0;
	return execctl_fail(c->ctl, EXIT_CTL_REFUSED,
	    "cp: there is no directory %s%s (%s); nothing was copied", parent,
	    c->to_server ? " on the server" : "", strerror(ENOENT));
}

/* Several sources need a target that is an existing directory. */
static int
find_target(struct copy *c, struct target *t, int nsources)
{
	enum kind kind = kind_of(c, t->path);

	if (kind == KIND_FAILED)
		return c->code;
	t->directory = kind == KIND_DIRECTORY;
	if (nsources > 1 && !t->directory)
		return execctl_fail(c->ctl, EXIT_CTL_USAGE,
		    "cp: %s is not a directory, and there are %d sources",
		    t->path, nsources);
	return kind == KIND_NONE ? check_parent(c, t->path) : 0;
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

		c->spool = c->spooled[i];
		copy_source(c, c->to_server ? source : server_path_part(source),
		    &t, nsources == 1);
	}
	copy_wait(c, 0);
	copy_finish(c);
	return c->code;
}

static void
print_summary(struct copy *c)
{
	const struct parsed *p = c->ctl->parsed;

	copy_show_end(
	    c, p->arguments[p->narguments == 2 ? 0 : p->narguments - 1]);
	if (c->ctl->json) {
		printf("{\"files\":%" PRIu64 ",\"bytes\":%" PRIu64
		       ",\"failed\":%u,\"skipped\":%u",
		    c->files, c->bytes, c->failed, c->skipped);
		if (c->preserve || c->unkept > 0)
			printf(",\"unkept\":%u", c->unkept);
		puts("}");
	} else if (c->failed + c->skipped + c->unkept > 0) {
		execctl_say("%" PRIu64 " files copied, %u failed, %u skipped, "
			    "%u attributes not kept",
		    c->files, c->failed, c->skipped, c->unkept);
	}
}

static int
copy_connected(struct copy *c)
{
	struct execctl *ctl = c->ctl;
	int code = copy_begin(c);

	if (code == 0)
		code = execctl_connect(ctl, NULL, false);
	if (code == 0)
		code = files_sandbox_take(ctl);
	if (code != 0)
		return code;
	code = copy_all(c);
	if (c->signal != 0) {
		execctl_fail(ctl, 128 + c->signal,
		    copy_give_up(c)
			? "interrupted; incomplete files were removed"
			: "interrupted");
		fflush(stdout);
		/* Exits at once: callbacks for abandoned files must not run any
		 * more. */
		_exit(128 + c->signal);
	}
	if (execd_client_state(ctl->client) == EXECD_OVER)
		code = execctl_over(ctl);
	print_summary(c);
	return code;
}

int
cmd_cp(struct execctl *ctl)
{
	bool archive = option(ctl->parsed, "archive") != NULL;
	struct copy c = { .ctl = ctl,
		.recursive =
		    archive || option(ctl->parsed, "recursive") != NULL,
		.preserve =
		    archive || option(ctl->parsed, "preserve") != NULL };
	int code = check_sides(ctl, &c.to_server);

	if (code == 0)
		code = spool_sources(&c);
	if (code == 0)
		code = copy_connected(&c);
	free(c.spooled);
	return code;
}
