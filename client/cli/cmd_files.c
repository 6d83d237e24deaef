/* SPDX-License-Identifier: ISC */
/*
 * The commands execctl ls, cat, rm, mv and mkdir, and what a shell's completion
 * asks of the server.
 */

#include "base.h"
#include "capabilities.h"
#include "cmd.h"
#include "path_uri.h"
#include "transfer.h"
#include "utf8.h"

#define QUEUED_MAX (4u << 20) /* bytes of output */

const struct option_row ls_options[] = {
	{ "long", 'l', NULL, "kind, size and time, too" },
	{ "human-readable", 'h', NULL, "sizes like 1.2 MiB" },
	{ "all", 'a', NULL, "names that begin with a dot, too" },
	FILES_SANDBOX_OPTIONS,
	{ 0 },
};

const struct option_row sandbox_options[] = {
	FILES_SANDBOX_OPTIONS,
	{ 0 },
};

const struct option_row rm_options[] = {
	{ "recursive", 'r', NULL,
	    "directories, and everything in them (also -R)", .also = 'R' },
	{ "force", 'f', NULL, "what is not there is no failure" },
	FILES_SANDBOX_OPTIONS,
	{ 0 },
};

const struct option_row mkdir_options[] = {
	{ "parents", 'p', NULL,
	    "also those above; what is there is no failure" },
	FILES_SANDBOX_OPTIONS,
	{ 0 },
};

/* --- ls ----------------------------------------------------------------- */

/* One entry. Metadata of several entries is requested at the same time. */
struct entry {
	struct listing *listing;
	char *name;
	bool directory, file;
	bool known; /* size and time are known */
	bool link;
	int64_t size, modified_ms;
	char *error;
};

struct listing {
	struct execctl *ctl;
	struct entry *entries;
	size_t n;
	size_t waiting;
};

static void
got_metadata(void *arg, const struct execd_answer *a)
{
	struct entry *e = arg;

	e->listing->waiting--;
	if (a->code != 0) {
		e->error = xstrdup(a->message);
		return;
	}
	e->known = true;
	e->directory =
	    execd_json_bool(json_get(a->result, "isDirectory"), false);
	e->file = execd_json_bool(json_get(a->result, "isFile"), false);
	e->link = execd_json_bool(json_get(a->result, "isSymlink"), false);
	e->size = execd_json_number(json_get(a->result, "size"), 0);
	e->modified_ms =
	    execd_json_number(json_get(a->result, "modifiedAtMs"), 0);
}

static void
ask_metadata(struct execctl *ctl, const char *path, struct entry *e)
{
	e->listing->waiting++;
	ask_path(ctl, "fs/getMetadata", path, got_metadata, e);
}

static int
by_name(const void *a, const void *b)
{
	const struct entry *ea = a, *eb = b;

	return strcmp(ea->name, eb->name);
}

static void
take_entries(struct listing *l, const struct json_value *list, bool all)
{
	l->entries = xcalloc(list ? list->count : 0, sizeof(*l->entries));
	for (const struct json_value *v = execd_json_first(list); v;
	     v = v->next) {
		size_t len = 0;
		const char *name =
		    execd_json_string(json_get(v, "fileName"), &len);

		if (name == NULL || (!all && len > 0 && name[0] == '.'))
			continue;
		l->entries[l->n++] = (struct entry){ .listing = l,
			.name = xstrndup(name, len),
			.directory =
			    execd_json_bool(json_get(v, "isDirectory"), false),
			.file = execd_json_bool(json_get(v, "isFile"), false) };
	}
	if (l->n > 1)
		qsort(l->entries, l->n, sizeof(*l->entries), by_name);
}

/* Control characters in a server's name must not reach the terminal. */
static void
print_name(const char *name)
{
	struct buf b;

	if (!isatty(STDOUT_FILENO)) {
		fputs(name, stdout);
		return;
	}
	buf_init(&b, SIZE_MAX);
	utf8_escape(&b, name, strlen(name));
	fwrite(b.data, 1, b.len, stdout);
	buf_clear(&b);
}

static void
print_entry_json(const struct entry *e)
{
	struct json_text t;

	object_begin(&t);
	json_key_cstring(&t.w, "name", e->name);
	json_key_bool(&t.w, "isDirectory", e->directory);
	json_key_bool(&t.w, "isFile", e->file);
	if (e->known) {
		json_key_bool(&t.w, "isSymlink", e->link);
		json_key_i64(&t.w, "size", e->size);
		json_key_i64(&t.w, "modifiedAtMs", e->modified_ms);
	}
	object_print(&t);
}

static void
print_size(const struct listing *l, int64_t size)
{
	struct buf b;

	if (option(l->ctl->parsed, "human-readable") == NULL) {
		printf("%12" PRId64, size);
		return;
	}
	buf_init(&b, SIZE_MAX);
	size_put(&b, (double)size);
	printf("%12.*s", (int)b.len, (const char *)b.data);
	buf_clear(&b);
}

static void
print_entry(struct listing *l, const struct entry *e)
{
	time_t at = (time_t)(e->modified_ms / 1000);
	char when[32] = "?";
	struct tm tm;

	if (l->ctl->json) {
		print_entry_json(e);
		return;
	}
	if (e->known) {
		if (localtime_r(&at, &tm) != NULL)
			strftime(when, sizeof(when), "%Y-%m-%d %H:%M", &tm);
		printf("%c ", e->link	     ? 'l'
			      : e->directory ? 'd'
			      : e->file	     ? '-'
					     : '?');
		print_size(l, e->size);
		printf(" %s ", when);
	} else if (e->error != NULL) {
		printf("? %12s %-16s ", "?", "?");
	}
	print_name(e->name);
	puts(e->directory ? "/" : "");
}

static void
listing_clear(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->entries[i].name);
		free(l->entries[i].error);
	}
	free(l->entries);
}

/* Lists a path that is not a directory as itself, like ls(1). */
static int
list_one(struct execctl *ctl, const char *path, const struct reply *failed)
{
	struct listing l = { .ctl = ctl, .n = 1 };
	int code = 0;

	l.entries = xcalloc(1, sizeof(*l.entries));
	l.entries[0].listing = &l;
	l.entries[0].name = xstrdup(path);
	ask_metadata(ctl, path, &l.entries[0]);
	while (l.waiting > 0)
		loop_once(ctl);
	if (l.entries[0].known && !l.entries[0].directory)
		print_entry(&l, &l.entries[0]);
	else
		code = call_failed(ctl, failed, path);
	listing_clear(&l);
	return code;
}

static int
list_path(struct execctl *ctl, const char *given)
{
	_cleanup_free_ char *path = remote_path(ctl, given);
	bool details = option(ctl->parsed, "long") != NULL;
	struct listing l = { .ctl = ctl };
	struct reply r;
	int code = 0;

	call_path(ctl, "fs/readDirectory", path, &r);
	if (r.code != 0) {
		code = list_one(ctl, path, &r);
		reply_clear(&r);
		return code;
	}
	take_entries(&l, json_get(r.result, "entries"),
	    option(ctl->parsed, "all") != NULL);
	for (size_t i = 0; details && i < l.n; i++) {
		_cleanup_free_ char *full =
		    xasprintf("%s/%s", path, l.entries[i].name);

		ask_metadata(ctl, full, &l.entries[i]);
	}
	while (l.waiting > 0)
		loop_once(ctl);
	for (size_t i = 0; i < l.n; i++)
		print_entry(&l, &l.entries[i]);
	listing_clear(&l);
	reply_clear(&r);
	return code;
}

int
connect_to_paths(struct execctl *ctl)
{
	const struct parsed *p = ctl->parsed;
	int code = 0;

	for (int i = 0; i < p->narguments && code == 0; i++) {
		const char *path = p->arguments[i];

		code = server_path_take(ctl, &path);
		p->arguments[i] = (char *)(uintptr_t)path;
	}
	if (code == 0)
		code = execctl_connect(ctl, NULL, false);
	return code != 0 ? code : files_sandbox_take(ctl);
}

int
cmd_ls(struct execctl *ctl)
{
	const struct parsed *p = ctl->parsed;
	int code = connect_to_paths(ctl), worst = code;

	if (code != 0)
		return code;
	if (p->narguments == 0)
		return list_path(ctl, "");
	for (int i = 0; i < p->narguments; i++) {
		if (p->narguments > 1 && !ctl->json)
			printf("%s%s:\n", i > 0 ? "\n" : "", p->arguments[i]);
		code = list_path(ctl, p->arguments[i]);
		worst = code > worst ? code : worst;
	}
	return worst;
}

/* --- cat ---------------------------------------------------------------- */

struct cat {
	struct output out;
	struct download download;
	bool done;
	int code;
	char *message;
};

static int
cat_write(void *arg, const void *data, size_t len)
{
	struct cat *c = arg;

	output_put(&c->out, data, len);
	return c->out.failed;
}

static bool
cat_ready(void *arg)
{
	struct cat *c = arg;

	return output_queued(&c->out) < QUEUED_MAX;
}

static void
cat_changed(void *arg)
{
	struct cat *c = arg;

	if (c->out.failed < 0)
		download_fail(
		    &c->download, c->out.failed, strerror(-c->out.failed));
	download_update(&c->download);
}

static void
cat_done(void *arg, int code, const char *message)
{
	struct cat *c = arg;

	c->done = true;
	c->code = code;
	c->message = xstrdup(message);
}

static int
cat_status(struct execctl *ctl, const struct cat *c, const char *path)
{
	if (execd_client_state(ctl->client) == EXECD_OVER)
		return execctl_over(ctl);
	if (c->out.failed < 0)
		return execctl_fail(ctl,
		    c->out.failed == -EPIPE ? 128 + SIGPIPE : EXIT_CTL_REFUSED,
		    "standard output: %s", strerror(-c->out.failed));
	if (c->code != 0)
		return execctl_fail(
		    ctl, EXIT_CTL_REFUSED, "%s: %s", path, c->message);
	return 0;
}

static int
cat_file(struct execctl *ctl, const char *given)
{
	struct cat c = { 0 };
	int code;

	output_init(&c.out, ctl, STDOUT_FILENO, cat_changed, &c);
	c.download = (struct download){
		.t = { .ctl = ctl,
		    .path = remote_path(ctl, given),
		    .done = cat_done,
		    .arg = &c },
		.write = cat_write,
		.ready = cat_ready,
	};
	download_start(&c.download);
	while (!c.done)
		loop_once(ctl);
	c.out.changed = NULL;
	output_drain(&c.out);
	code = cat_status(ctl, &c, c.download.t.path);
	output_clear(&c.out);
	download_clear(&c.download);
	free(c.message);
	return code;
}

int
cmd_cat(struct execctl *ctl)
{
	const struct parsed *p = ctl->parsed;
	int code = connect_to_paths(ctl), worst = code;

	if (code != 0)
		return code;
	for (int i = 0; i < p->narguments; i++) {
		code = cat_file(ctl, p->arguments[i]);
		worst = code > worst ? code : worst;
		if (code == 128 + SIGPIPE)
			break;
	}
	return worst;
}

/* --- rm, mv and mkdir --------------------------------------------------- */

static int
each_path(struct execctl *ctl, int (*one)(struct execctl *, const char *))
{
	const struct parsed *p = ctl->parsed;
	int code = connect_to_paths(ctl), worst = 0;

	if (code != 0)
		return code;
	for (int i = 0; i < p->narguments; i++)
		if (p->arguments[i][0] == '\0')
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    "%s: a path is empty; nothing was done",
			    p->command->name);
	for (int i = 0; i < p->narguments; i++) {
		code = one(ctl, p->arguments[i]);
		worst = code > worst ? code : worst;
	}
	return worst;
}

/* Ends the params and calls the method. `repeat' says that a second call has
 * the same effect. Returns the exit status. */
static int
do_to(struct execctl *ctl, const char *method, struct json_text *params,
    bool repeat, const char *what)
{
	struct reply r;
	int code = 0;

	call(ctl, method, params, repeat ? EXECD_REPEAT : 0, &r);
	if (r.code != 0)
		code = call_failed(ctl, &r, what);
	reply_clear(&r);
	return code;
}

/* A link to a directory is none if links are not followed. */
static bool
is_directory(struct execctl *ctl, const char *path, bool follow)
{
	struct reply r;
	bool is;

	call_path(ctl, "fs/getMetadata", path, &r);
	is = execd_json_bool(json_get(r.result, "isDirectory"), false) &&
	     (follow ||
		 !execd_json_bool(json_get(r.result, "isSymlink"), false));
	reply_clear(&r);
	return is;
}

static const char *
last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* Cuts off the slashes at the end of the path. Returns its last name. */
static const char *
cut_last(char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		path[--len] = '\0';
	return last_name(path);
}

static int
remove_path(struct execctl *ctl, const char *given)
{
	_cleanup_free_ char *path = remote_path(ctl, given);
	_cleanup_free_ char *home = remote_path(ctl, "");
	bool recursive = option(ctl->parsed, "recursive") != NULL;
	bool force = option(ctl->parsed, "force") != NULL;
	const char *last = cut_last(path);
	struct json_text t;

	/* rm(1) refuses these, too. The home directory is one slip away. */
	cut_last(home);
	if (last[0] == '\0' || strcmp(last, ".") == 0 ||
	    strcmp(last, "..") == 0 || strcmp(path, home) == 0)
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "rm: `%s' is not removed: it is the root, the home "
		    "directory, `.' or `..'",
		    given);
	if (!recursive && is_directory(ctl, path, false))
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "%s: it is a directory; -r removes directories", path);
	params_begin(&t, "path", path);
	json_key_bool(&t.w, "recursive", recursive);
	json_key_bool(&t.w, "force", force);
	return do_to(ctl, "fs/remove", &t, force, path);
}

int
cmd_rm(struct execctl *ctl)
{
	return each_path(ctl, remove_path);
}

static int
make_directory(struct execctl *ctl, const char *given)
{
	_cleanup_free_ char *path = remote_path(ctl, given);
	bool parents = option(ctl->parsed, "parents") != NULL;
	struct json_text t;

	params_begin(&t, "path", path);
	json_key_bool(&t.w, "recursive", parents);
	return do_to(ctl, "fs/createDirectory", &t, parents, path);
}

int
cmd_mkdir(struct execctl *ctl)
{
	return each_path(ctl, make_directory);
}

static int
move_path(struct execctl *ctl, const char *given)
{
	const struct parsed *p = ctl->parsed;
	const char *target = p->arguments[p->narguments - 1];
	_cleanup_free_ char *from = remote_path(ctl, given);
	_cleanup_free_ char *to = remote_path(ctl, target);
	struct json_text t;

	if (given == target)
		return 0;
	if (!execd_client_can(ctl->client, CAN_MOVE))
		return execctl_fail(ctl, EXIT_CTL_REFUSED,
		    "mv: this server renames nothing (it does not announce "
		    "fsMove)");
	if (is_directory(ctl, to, true)) {
		char *in = xasprintf("%s/%s", to, cut_last(from));

		free(to);
		to = in;
	} else if (p->narguments > 2) {
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "mv: %s is not a directory, and there are %d sources", to,
		    p->narguments - 1);
	}
	params_begin(&t, "sourcePath", from);
	json_key_path(&t.w, "destinationPath", to);
	json_key_bool(&t.w, "overwrite", true);
	return do_to(ctl, "fs/move", &t, false, from);
}

int
cmd_mv(struct execctl *ctl)
{
	const struct parsed *p = ctl->parsed;

	/* In cp such a path is on this machine. */
	for (int i = 1; i < p->narguments; i++)
		if ((server_path_part(p->arguments[i]) == NULL) !=
		    (server_path_part(p->arguments[0]) == NULL))
			return execctl_fail(ctl, EXIT_CTL_USAGE,
			    "mv: all paths are the server's, so all begin with "
			    "a colon or none does; cp copies from there and "
			    "to there");
	return each_path(ctl, move_path);
}

/* --- Completion --------------------------------------------------------- */

#define COMPLETE_S 2 /* nobody waits longer for a key */

static void
give_up(int sig)
{
	_exit(0);
}

static void
be_quiet(void)
{
	_cleanup_close_ int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(nothing, STDERR_FILENO);
	signal(SIGALRM, give_up);
	alarm(COMPLETE_S);
}

/* No program is started for a key: it might ask for a password, or lease a
 * machine. */
static bool
connect_to_server(struct execctl *ctl)
{
	return (ctl->environment.url != NULL ||
		   execctl_find_server(ctl) == 0) &&
	       !url_starts_program(ctl->environment.url) &&
	       execctl_connect(ctl, NULL, false) == 0;
}

static bool
is_printable(const char *name)
{
	for (; *name != '\0'; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f)
			return false;
	return true;
}

int
complete_paths(struct execctl *ctl, const char *word)
{
	const char *path = word, *last;
	_cleanup_free_ char *directory = NULL, *full = NULL;
	struct listing l = { .ctl = ctl };
	struct reply r;

	be_quiet();
	if (server_path_take(ctl, &path) != 0 || !connect_to_server(ctl))
		return 0;
	last = last_name(path);
	directory = xstrndup(path, (size_t)(last - path));
	full = remote_path(ctl, directory);
	call_path(ctl, "fs/readDirectory", full, &r);
	take_entries(&l, json_get(r.result, "entries"), last[0] == '.');
	for (size_t i = 0; i < l.n; i++)
		if (strncmp(l.entries[i].name, last, strlen(last)) == 0 &&
		    is_printable(l.entries[i].name))
			printf("%.*s%s%s\n", (int)(last - word), word,
			    l.entries[i].name,
			    l.entries[i].directory ? "/" : "");
	fflush(stdout);
	listing_clear(&l);
	reply_clear(&r);
	return 0;
}
