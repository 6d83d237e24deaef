/* SPDX-License-Identifier: ISC */
/*
 * Copies directories in both directions.
 */
#include <fts.h>

#include "base.h"
#include "capabilities.h"
#include "copy.h"
#include "file_replace.h"
#include "jsonrpc.h"
#include "path_uri.h"
#include "utf8.h"

#define DEPTH_MAX 256 /* of the server's directories */
#define AHEAD_MAX 16  /* lists that are asked for ahead, at each depth */

/* --- To the server ------------------------------------------------------ */

/* A directory or a link that is made there. */
struct made {
	struct copy *copy;
	char *path;	 /* owned */
	char *target;	 /* the text of a link; owned; NULL: a directory */
	char *temporary; /* of a link that replaces another; owned; or NULL */
};

static struct made *
made_new(struct copy *c, const char *path)
{
	struct made *m = xcalloc(1, sizeof(*m));

	m->copy = c;
	m->path = xstrdup(path);
	c->active++;
	return m;
}

static void
made_end(struct made *m, int code, const char *message)
{
	m->copy->active--;
	if (code != 0)
		copy_failed(m->copy, m->path, message);
	else if (m->target != NULL)
		copied(m->copy, NULL, m->path);
	free(m->path);
	free(m->target);
	free(m->temporary);
	free(m);
}

static void
made_answered(void *arg, const struct execd_answer *a)
{
	made_end(arg, a->code, a->message);
}

/* --- Links there -------------------------------------------------------- */

static void
ask_symlink(struct made *m, const char *path, execd_answer_fn *fn)
{
	struct json_text t;

	params_begin(&t, "path", path);
	json_key_cstring(&t.w, "target", m->target);
	ask(m->copy->ctl, "fs/symlink", &t, fn, m);
}

static void
ignore_answer(void *arg, const struct execd_answer *a)
{
	struct copy *c = arg;

	(void)a;
	c->active--;
}

/* If the request was repeated after a lost connection, the first one may have
 * moved the link. */
static void
link_moved(void *arg, const struct execd_answer *a)
{
	struct made *m = arg;

	if (a->code == RPC_NOT_FOUND && a->repeated) {
		made_end(m, 0, NULL);
		return;
	}
	if (a->code != 0) {
		m->copy->active++;
		copy_remove(m->copy, m->temporary, ignore_answer, m->copy);
	}
	made_end(m, a->code, a->message);
}

static void
link_beside(void *arg, const struct execd_answer *a)
{
	struct made *m = arg;
	struct json_text t;

	if (a->code != 0 && !a->repeated) {
		made_end(m, a->code, a->message);
		return;
	}
	params_begin(&t, "sourcePath", m->temporary);
	json_key_path(&t.w, "destinationPath", m->path);
	json_key_bool(&t.w, "overwrite", true);
	ask(m->copy->ctl, "fs/move", &t, link_moved, m);
}

/* The new link replaces a link or a file of that name, as on this machine. */
static void
link_made(void *arg, const struct execd_answer *a)
{
	struct made *m = arg;
	bool exists =
	    a->code != 0 && strstr(a->message, "(os error 17)") != NULL;

	if (!exists || !execd_client_can(m->copy->ctl->client, CAN_MOVE)) {
		made_end(m, a->code, a->message);
		return;
	}
	m->temporary = temporary_beside(m->path);
	ask_symlink(m, m->temporary, link_beside);
}

/* --- Directories there -------------------------------------------------- */

static bool
is_there(struct copy *c, const char *path)
{
	struct reply r;
	bool there;

	call_path(c->ctl, "fs/getMetadata", path, &r);
	there = r.code == 0;
	reply_clear(&r);
	return there;
}

/* The server handles requests in order, so later requests find this directory.
 * A new directory that only its owner may read gets that mode before anything
 * is in it. */
static void
make_directory(struct copy *c, const FTSENT *e, const char *path)
{
	bool hidden = (e->fts_statp->st_mode & 077) == 0 && !is_there(c, path);
	struct json_text t;
	struct facts facts;

	facts_of_local(&facts, e->fts_statp);
	params_begin(&t, "path", path);
	ask(c->ctl, "fs/createDirectory", &t, made_answered, made_new(c, path));
	if (hidden)
		keep_remote_mode(c, path, 0700);
	if (!c->preserve)
		return;
	facts.attributes = file_has_attributes(-1, e->fts_accpath);
	copy_later(c, path, NULL, &facts);
}

static void
make_link(struct copy *c, const char *from, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(from, target, sizeof(target));
	struct made *m;

	if (n < 0) {
		copy_failed(c, from, strerror(errno));
		return;
	}
	if (utf8_check(0, (const uint8_t *)target, (size_t)n) != 0) {
		copy_skipped(c, from, "a link whose text is not UTF-8");
		return;
	}
	m = made_new(c, path);
	m->target = xstrndup(target, (size_t)n);
	ask_symlink(m, path, link_made);
}

/* A link to a file is copied as that file, as cp(1) does without options. Any
 * other link is copied as a link if the server can make one. */
void
copy_upload_link(struct copy *c, const char *from, const char *to)
{
	bool can = execd_client_can(c->ctl->client, CAN_SYMLINK);
	struct stat st;
	bool dangling = stat(from, &st) < 0;

	if (!dangling && S_ISREG(st.st_mode))
		copy_upload(c, from, to);
	else if (can)
		make_link(c, from, to);
	else
		copy_skipped(c, from,
		    dangling ? "a link to nothing, and this server makes no "
			       "links"
			     : "a link to something that is not a file, and "
			       "this server makes no links");
}

static void
upload_entry(struct copy *c, const FTSENT *e, const char *to)
{
	switch (e->fts_info) {
	case FTS_D:
		make_directory(c, e, to);
		break;
	case FTS_F:
		copy_upload(c, e->fts_accpath, to);
		break;
	case FTS_SL:
	case FTS_SLNONE:
		copy_upload_link(c, e->fts_accpath, to);
		break;
	case FTS_DNR:
	case FTS_NS:
	case FTS_ERR:
		copy_failed(c, e->fts_path, strerror(e->fts_errno));
		break;
	case FTS_DEFAULT:
		copy_skipped(c, e->fts_path, "neither a file nor a directory");
		break;
	default:
		break;
	}
}

void
copy_upload_tree(struct copy *c, const char *from, const char *to)
{
	if (!copy_bundle(c, from, to))
		copy_upload_each(c, from, to);
}

void
copy_upload_each(struct copy *c, const char *from, const char *to)
{
	char *roots[] = { (char *)(uintptr_t)from, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *e;

	if (fts == NULL) {
		copy_failed(c, from, strerror(errno));
		return;
	}
	while (!c->stop && (errno = 0, e = fts_read(fts)) != NULL) {
		_cleanup_free_ char *target =
		    xasprintf("%s%s", to, e->fts_path + strlen(from));

		copy_wait(c, COPY_ACTIVE - 1);
		upload_entry(c, e, target);
	}
	if (!c->stop && errno != 0)
		copy_failed(c, from, strerror(errno));
	fts_close(fts);
}

/* --- From the server ---------------------------------------------------- */

/* A server's name becomes a local name, so it must not lead to another
 * directory. */
static bool
is_name(const char *name, size_t len)
{
	if (len == 0 || memchr(name, '/', len) || memchr(name, '\0', len))
		return false;
	return !(len <= 2 && strncmp(name, "..", len) == 0);
}

/* Takes the name from `path` if the server sends it: `path` has every byte, but
 * `fileName` shows U+FFFD for bytes that are not UTF-8. */
static char *
name_of_path(const struct json_value *v)
{
	_cleanup_free_ char *path = uri_path(json_get(v, "path"));

	return path != NULL ? xstrdup(strrchr(path, '/') + 1) : NULL;
}

static char *
name_of(const struct json_value *v)
{
	size_t len = 0;
	const char *name = execd_json_string(json_get(v, "fileName"), &len);

	if (name == NULL || !is_name(name, len))
		return NULL;
	if (json_get(v, "path") != NULL)
		return name_of_path(v);
	return xstrndup(name, len);
}

static void
take_details(struct remote_entry *e, const struct json_value *v)
{
	size_t len = 0;
	const char *target = execd_json_string(json_get(v, "linkTarget"), &len);

	e->detailed = json_get(v, "isSymlink") != NULL;
	e->link = execd_json_bool(json_get(v, "isSymlink"), false);
	e->size = (uint64_t)execd_json_number(json_get(v, "size"), 0);
	if (target != NULL && len > 0 && memchr(target, '\0', len) == NULL)
		e->target = xstrndup(target, len);
	facts_of_remote(&e->facts, v);
}

static void
take_entry(struct copy *c, struct remote_directory *d, const char *path,
    const struct json_value *v)
{
	struct remote_entry *e = &d->entries[d->n];

	e->name = name_of(v);
	if (e->name == NULL || !is_name(e->name, strlen(e->name))) {
		copy_failed(c, path,
		    "the server lists an invalid name; it is left out");
		free(e->name);
		e->name = NULL;
		return;
	}
	e->directory = execd_json_bool(json_get(v, "isDirectory"), false);
	e->file = execd_json_bool(json_get(v, "isFile"), false);
	take_details(e, v);
	d->n++;
}

static int
by_name(const void *a, const void *b)
{
	const struct remote_entry *ea = a, *eb = b;

	return strcmp(ea->name, eb->name);
}

/* The answer to fs/readDirectory, which may still be under way. */
struct listing {
	struct copy *copy;
	char *path; /* owned */
	bool done, there;
	bool dropped; /* nobody waits for it any more */
	char *why;    /* owned; why there is no list */
	struct remote_directory d;
};

static void
listing_free(struct listing *l)
{
	remote_directory_clear(&l->d);
	free(l->path);
	free(l->why);
	free(l);
}

/* NULL is allowed. */
static void
listing_drop(struct listing *l)
{
	if (l != NULL && l->done)
		listing_free(l);
	else if (l != NULL)
		l->dropped = true;
}

static void
listed(void *arg, const struct execd_answer *a)
{
	const struct json_value *list = json_get(a->result, "entries");
	struct listing *l = arg;

	l->done = true;
	if (l->dropped) {
		listing_free(l);
		return;
	}
	l->there = list != NULL;
	if (a->code != 0)
		l->why = xstrdup(a->message);
	l->d.entries = xcalloc(list ? list->count : 0, sizeof(*l->d.entries));
	for (const struct json_value *v = execd_json_first(list); v;
	     v = v->next)
		take_entry(l->copy, &l->d, l->path, v);
}

static struct listing *
listing_new(struct copy *c, const char *path)
{
	struct listing *l = xcalloc(1, sizeof(*l));
	struct json_text t;

	l->copy = c;
	l->path = xstrdup(path);
	params_begin(&t, "path", path);
	json_key_bool(&t.w, "details", true);
	ask(c->ctl, "fs/readDirectory", &t, listed, l);
	return l;
}

/* This ends: the client answers all requests before it is over. */
static bool
listing_wait(struct listing *l)
{
	while (!l->done)
		loop_once(l->copy->ctl);
	return l->there;
}

bool
remote_directory_list(
    struct copy *c, const char *path, struct remote_directory *d)
{
	struct listing *l = listing_new(c, path);
	bool there = listing_wait(l);

	d->entries = l->d.entries;
	d->n = l->d.n;
	l->d = (struct remote_directory){ 0 };
	listing_free(l);
	if (d->n > 1)
		qsort(d->entries, d->n, sizeof(*d->entries), by_name);
	return there;
}

const struct remote_entry *
remote_directory_find(const struct remote_directory *d, const char *name)
{
	const struct remote_entry key = { .name = (char *)(uintptr_t)name };

	if (d->n == 0)
		return NULL;
	return bsearch(&key, d->entries, d->n, sizeof(key), by_name);
}

void
remote_directory_clear(struct remote_directory *d)
{
	for (size_t i = 0; i < d->n; i++) {
		listing_drop(d->entries[i].ahead);
		free(d->entries[i].name);
		free(d->entries[i].target);
	}
	free(d->entries);
}

/* A server without details must be asked about each path. */
static void
ask_details(struct copy *c, struct remote_entry *e, const char *path)
{
	struct reply r;

	if (e->detailed || (e->file && !c->preserve))
		return;
	call_path(c->ctl, "fs/getMetadata", path, &r);
	if (r.code == 0)
		take_details(e, r.result);
	reply_clear(&r);
}

static void download_directory(struct copy *c, struct listing *l,
    const char *to, const struct facts *facts, int depth);

/* Makes a link at the end of the copy. It is not followed, because links to
 * directories can form circles. Links to files are copied as files instead. */
static void
download_link(struct copy *c, const struct remote_entry *e, const char *from,
    const char *to)
{
	if (e->target != NULL)
		copy_later(c, to, e->target, NULL);
	else
		copy_skipped(c, from,
		    e->detailed && execd_client_can(c->ctl->client, CAN_DETAILS)
			? "a link whose text is not UTF-8"
			: "a link to a directory, and this server does not "
			  "report where links lead");
}

static bool
is_descended(const struct remote_entry *e)
{
	return e->directory && !e->link && !e->file && e->detailed;
}

/* Asks for the lists of the directories that come next, so that the copy does
 * not wait for each of them in turn. *next is the first that was not looked at.
 */
static void
look_ahead(struct copy *c, struct listing *l, size_t at, size_t *next)
{
	size_t under_way = 0;

	for (size_t i = at; i < *next; i++)
		under_way += l->d.entries[i].ahead != NULL;
	for (; *next < l->d.n && under_way < AHEAD_MAX; (*next)++) {
		struct remote_entry *e = &l->d.entries[*next];
		_cleanup_free_ char *path = NULL;

		if (!is_descended(e))
			continue;
		path = xasprintf("%s/%s", l->path, e->name);
		e->ahead = listing_new(c, path);
		under_way++;
	}
}

static struct listing *
take_ahead(struct copy *c, struct remote_entry *e, const char *path)
{
	struct listing *l = e->ahead;

	e->ahead = NULL;
	return l != NULL ? l : listing_new(c, path);
}

static void
download_entry(struct copy *c, struct remote_entry *e, const char *from,
    const char *to, int depth)
{
	_cleanup_free_ char *source = xasprintf("%s/%s", from, e->name);
	_cleanup_free_ char *target = xasprintf("%s/%s", to, e->name);

	copy_wait(c, COPY_ACTIVE - 1);
	ask_details(c, e, source);
	if (e->file && c->unbundle != NULL &&
	    unbundle_take(c->unbundle, e, source, target))
		return;
	if (e->file)
		copy_download(c, source, target, &e->facts);
	else if (e->link)
		download_link(c, e, source, target);
	else if (!e->directory)
		copy_skipped(c, source, "neither a file nor a directory");
	else
		download_directory(
		    c, take_ahead(c, e, source), target, &e->facts, depth + 1);
}

/* Makes a directory. Its owner keeps full access during the copy. Below the top
 * an existing link is refused: the server could have had it made. */
static bool
make_local(struct copy *c, const char *path, const struct facts *f, int depth)
{
	mode_t mode = f->has_mode ? f->mode & 0777 : 0777;
	struct stat st;

	if (mkdir(path, mode | 0700) == 0) {
		if (c->preserve || (mode & 0700) != 0700)
			copy_later(c, path, NULL, f);
		return true;
	}
	if (errno == EEXIST && depth > 0 &&
	    (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode)))
		errno = ENOTDIR;
	if (errno != EEXIST) {
		c->stop |= errno == ENOSPC || errno == EDQUOT;
		copy_failed(c, path, strerror(errno));
		return false;
	}
	if (c->preserve)
		copy_later(c, path, NULL, f);
	return true;
}

static void
download_entries(struct copy *c, struct listing *l, const char *to, int depth)
{
	size_t next = 0;

	if (!listing_wait(l)) {
		if (l->why != NULL)
			copy_failed(c, l->path, l->why);
		return;
	}
	for (size_t i = 0; i < l->d.n && !c->stop; i++) {
		if (next <= i)
			next = i;
		if (is_descended(&l->d.entries[i]))
			look_ahead(c, l, i, &next);
		download_entry(c, &l->d.entries[i], l->path, to, depth);
	}
}

/* Takes the list over. */
static void
download_directory(struct copy *c, struct listing *l, const char *to,
    const struct facts *facts, int depth)
{
	if (depth > DEPTH_MAX)
		copy_failed(
		    c, l->path, "more than 256 directories inside each other");
	else if (make_local(c, to, facts, depth))
		download_entries(c, l, to, depth);
	listing_drop(l);
}

void
copy_download_tree(
    struct copy *c, const char *from, const char *to, const struct facts *facts)
{
	c->unbundle = unbundle_new(c, from);
	download_directory(c, listing_new(c, from), to, facts, 0);
	if (c->unbundle != NULL)
		unbundle_end(c->unbundle);
	c->unbundle = NULL;
}
