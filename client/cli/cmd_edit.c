/* SPDX-License-Identifier: ISC */
/*
 * execctl edit: a file of the server in the editor of this machine. While the
 * user edits there is no connection, so it does not matter how long it takes.
 */
#include "base.h"
#include "cmd.h"
#include "copy.h"
#include "jsonrpc.h"
#include "run.h"

#define SUFFIX_MAX 100 /* bytes of the file's name in that of the copy */

/* The server says this of the file. Another size or time means that somebody
 * else has changed it. */
struct version {
	bool there;
	int64_t size, modified_ms;
};

struct edit {
	struct execctl *ctl;
	char *path; /* on the server; owned */
	char *copy; /* here; owned */
	int fd;	    /* of the copy; owned */
	struct version version;
	bool done;
	int code;
	char *message; /* owned */
};

/* Returns 0, or the exit status after a message. */
static int
look_at(struct execctl *ctl, const char *path, struct version *v)
{
	struct reply r;
	int code = 0;

	call_path(ctl, "fs/getMetadata", path, &r);
	*v = (struct version){
		.there = r.code == 0,
		.size = execd_json_number(json_get(r.result, "size"), 0),
		.modified_ms =
		    execd_json_number(json_get(r.result, "modifiedAtMs"), 0),
	};
	if (r.code != 0 && r.code != RPC_NOT_FOUND)
		code = call_failed(ctl, &r, path);
	else if (r.code == 0 &&
		 !execd_json_bool(json_get(r.result, "isFile"), false))
		code = execctl_fail(
		    ctl, EXIT_CTL_REFUSED, "%s: it is not a file", path);
	reply_clear(&r);
	return code;
}

static bool
is_same_version(const struct version *a, const struct version *b)
{
	return a->there == b->there && a->size == b->size &&
	       a->modified_ms == b->modified_ms;
}

/* --- Before the editor -------------------------------------------------- */

static int
write_copy(void *arg, const void *data, size_t len)
{
	const struct edit *e = arg;

	return write_piece(e->fd, data, len);
}

static void
downloaded(void *arg, int code, const char *message)
{
	struct edit *e = arg;

	e->done = true;
	e->code = code;
	e->message = xstrdup(message);
}

/* Only this user can read the copy. The end of its name is that of the file,
 * since editors go by that. */
static int
make_copy(struct edit *e)
{
	const char *dir = getenv("TMPDIR"), *name = strrchr(e->path, '/') + 1;
	size_t len = strlen(name);

	if (len > SUFFIX_MAX)
		name += len - SUFFIX_MAX;
	e->copy = xasprintf("%s/execctl-XXXXXX-%s",
	    dir != NULL && dir[0] != '\0' ? dir : "/tmp", name);
	e->fd = mkostemps(e->copy, (int)strlen(name) + 1, O_CLOEXEC);
	if (e->fd < 0)
		return execctl_fail(e->ctl, EXIT_CTL_REFUSED, "%s: %s", e->copy,
		    strerror(errno));
	return 0;
}

static int
download_copy(struct edit *e)
{
	struct download d = {
		.t = { .ctl = e->ctl,
		    .path = xstrdup(e->path),
		    .done = downloaded,
		    .arg = e },
		.write = write_copy,
	};
	int code = 0;

	download_start(&d);
	while (!e->done)
		loop_once(e->ctl);
	if (execd_client_state(e->ctl->client) == EXECD_OVER)
		code = execctl_over(e->ctl);
	else if (e->code != 0)
		code = execctl_fail(
		    e->ctl, EXIT_CTL_REFUSED, "%s: %s", e->path, e->message);
	download_clear(&d);
	return code;
}

/* --- The editor --------------------------------------------------------- */

static void __attribute__((noreturn))
become_editor(const char *editor, const char *file)
{
	_cleanup_free_ char *script = xasprintf("%s \"$@\"", editor);

	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	execl("/bin/sh", "sh", "-c", script, editor, file, (char *)NULL);
	_exit(127);
}

/* A ^C in the editor is the editor's. Returns its exit status. */
static int
run_editor(const char *file)
{
	const char *editor = getenv("VISUAL");
	int status = 0;
	pid_t pid;

	if (editor == NULL || editor[0] == '\0')
		editor = getenv("EDITOR");
	if (editor == NULL || editor[0] == '\0')
		editor = "vi";
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	pid = fork();
	if (pid == 0)
		become_editor(editor, file);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	if (pid < 0)
		return EXIT_CTL_NOT_EXECUTABLE;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Many editors write a new file in place of the old one. */
static bool
is_changed(const struct stat *a, const struct stat *b)
{
	return a->st_ino != b->st_ino || a->st_size != b->st_size ||
	       a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
	       a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

/* --- After the editor --------------------------------------------------- */

/* A file that is there keeps its mode. A new one gets that of the copy, which
 * is then as any new file of this user. */
static int
upload_copy(struct edit *e)
{
	struct copy c = { .ctl = e->ctl, .to_server = true, .spool = -1 };
	int code = copy_begin(&c);

	if (code != 0)
		return code;
	if (!e->version.there && chmod(e->copy, 0666 & ~c.umask) < 0)
		execctl_say("%s: %s", e->copy, strerror(errno));
	copy_upload(&c, e->copy, e->path);
	copy_wait(&c, 0);
	copy_finish(&c);
	if (c.signal == 0)
		return c.code;
	copy_give_up(&c);
	return execctl_fail(e->ctl, 128 + c.signal, "interrupted");
}

static int
send_copy(struct edit *e)
{
	struct version now;
	int code = execctl_connect(e->ctl, NULL, false);

	if (code == 0)
		code = look_at(e->ctl, e->path, &now);
	if (code == 0 && !is_same_version(&now, &e->version))
		code = execctl_fail(e->ctl, EXIT_CTL_REFUSED,
		    "%s: somebody has changed it on the server meanwhile; it "
		    "stays as it is there",
		    e->path);
	return code != 0 ? code : upload_copy(e);
}

/* Returns the exit status. Clears keep if nothing of the user's is in the
 * copy, or all of it is on the server. */
static int
edit_copy(struct edit *e, bool *keep)
{
	struct stat before, after;
	int status;

	*keep = false;
	if (fstat(e->fd, &before) < 0)
		return execctl_fail(e->ctl, EXIT_CTL_REFUSED, "%s: %s", e->copy,
		    strerror(errno));
	status = run_editor(e->copy);
	if (stat(e->copy, &after) < 0)
		return execctl_fail(e->ctl, EXIT_CTL_REFUSED, "%s: %s", e->copy,
		    strerror(errno));
	*keep = is_changed(&before, &after);
	if (status != 0)
		return execctl_fail(e->ctl, EXIT_CTL_REFUSED,
		    "the editor ended with status %d; nothing was sent",
		    status);
	if (!*keep && !e->ctl->quiet)
		execctl_say("%s: not changed", e->path);
	if (!*keep)
		return 0;
	status = send_copy(e);
	*keep = status != 0;
	return status;
}

/* --- All of it ---------------------------------------------------------- */

static int
fetch(struct edit *e, const char *given)
{
	int code;

	e->path = remote_path(e->ctl, given);
	code = look_at(e->ctl, e->path, &e->version);
	if (code == 0)
		code = make_copy(e);
	if (code == 0 && e->version.there)
		code = download_copy(e);
	return code;
}

int
cmd_edit(struct execctl *ctl)
{
	struct edit e = { .ctl = ctl, .fd = -1 };
	struct execctl later; /* the connection after the editor */
	bool keep = false;
	int code = connect_to_paths(ctl);

	if (code == 0)
		code = fetch(&e, ctl->parsed->arguments[0]);
	if (code == 0) {
		execctl_beside(&later, ctl);
		later.quiet = ctl->quiet;
		later.json = ctl->json;
		execctl_clear(ctl);
		e.ctl = &later;
		code = edit_copy(&e, &keep);
		execctl_clear(&later);
	}
	if (keep)
		execctl_say("your version is in %s", e.copy);
	else if (e.fd >= 0)
		unlink(e.copy);
	if (e.fd >= 0)
		close(e.fd);
	free(e.path);
	free(e.copy);
	free(e.message);
	return code;
}
