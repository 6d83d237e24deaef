/* SPDX-License-Identifier: ISC */
/*
 * The commands execctl ls and execctl cat.
 */

#include "base.h"
#include "cmd.h"
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

const struct option_row cat_options[] = {
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

/* Connects to the server of the paths, which may be NAME:PATH or :PATH as in
 * cp. */
static int
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
