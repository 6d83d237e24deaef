/*
 * Directories, either way.
 */
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "copy.h"

#define DEPTH_MAX 256 /* of the server's directories */

/* --- To the server ------------------------------------------------------ */

struct made {
	struct copy *copy;
	char *path;
};

static void
made_directory(void *arg, const struct execd_answer *a)
{
	struct made *m = arg;

	m->copy->active--;
	if (a->code != 0)
		copy_failed(m->copy, m->path, a->message);
	free(m->path);
	free(m);
}

/* What is written below it is sent behind it, and served behind it. */
static void
make_remote(struct copy *c, const char *path)
{
	struct made *m = xmalloc(sizeof(*m));
	struct json_writer w;
	struct buf b;

	*m = (struct made){ c, xstrdup(path) };
	params_path(&b, &w, "path", path);
	json_end(&w, '}');
	c->active++;
	execd_client_request(c->ctl->client, "fs/createDirectory",
	    (const char *)b.data, b.len, EXECD_REPEAT, made_directory, m);
	buf_clear(&b);
}

/* A link to a file is copied as that file, as cp(1) without options would. */
static void
upload_link(struct copy *c, const FTSENT *e, const char *to)
{
	struct stat st;

	if (stat(e->fts_accpath, &st) < 0)
		copy_skipped(c, e->fts_path, "a link to nothing");
	else if (S_ISREG(st.st_mode))
		copy_upload(c, e->fts_accpath, to);
	else
		copy_skipped(c, e->fts_path, "a link to what is no file");
}

static void
upload_entry(struct copy *c, const FTSENT *e, const char *to)
{
	switch (e->fts_info) {
	case FTS_D:
		make_remote(c, to);
		break;
	case FTS_F:
		copy_upload(c, e->fts_accpath, to);
		break;
	case FTS_SL:
	case FTS_SLNONE:
		upload_link(c, e, to);
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
	char *roots[] = { (char *)(uintptr_t)from, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *e;

	if (fts == NULL) {
		copy_failed(c, from, strerror(errno));
		return;
	}
	while (!c->stop && (e = fts_read(fts)) != NULL) {
		_cleanup_free_ char *target =
		    xasprintf("%s%s", to, e->fts_path + strlen(from));

		copy_wait(c, COPY_ACTIVE - 1);
		upload_entry(c, e, target);
	}
	fts_close(fts);
}

/* --- From the server ---------------------------------------------------- */

struct entry {
	char *name;
	bool directory, file;
};

struct directory {
	struct entry *entries;
	size_t n;
};

/* What a server says is a name becomes one of ours: nothing of it may lead
 * elsewhere. */
static bool
is_name(const char *name, size_t len)
{
	if (len == 0 || memchr(name, '/', len) || memchr(name, '\0', len))
		return false;
	return !(len <= 2 && strncmp(name, "..", len) == 0);
}

static void
take_entry(struct copy *c, struct directory *d, const char *path,
    const struct json_value *v)
{
	size_t len = 0;
	const char *name = execd_json_string(json_get(v, "fileName"), &len);
	struct entry *e = &d->entries[d->n];

	if (name == NULL || !is_name(name, len)) {
		copy_failed(c, path,
		    "the server lists a name that is none; it is left out");
		return;
	}
	e->name = xstrndup(name, len);
	e->directory = execd_json_bool(json_get(v, "isDirectory"), false);
	e->file = execd_json_bool(json_get(v, "isFile"), false);
	d->n++;
}

static bool
read_remote(struct copy *c, const char *path, struct directory *d)
{
	const struct json_value *list;
	struct json_writer w;
	struct reply r;
	struct buf b;

	*d = (struct directory){ 0 };
	params_path(&b, &w, "path", path);
	json_end(&w, '}');
	call(c->ctl, "fs/readDirectory", &b, EXECD_REPEAT, &r);
	if (r.code != 0)
		copy_failed(c, path, r.message);
	list = json_get(r.result, "entries");
	d->entries = xcalloc(list ? list->count : 0, sizeof(*d->entries));
	for (const struct json_value *v = execd_json_first(list); v;
	     v = v->next)
		take_entry(c, d, path, v);
	reply_clear(&r);
	return list != NULL;
}

/* Links to directories may lead around in circles. */
static bool
is_link(struct copy *c, const char *path)
{
	struct json_writer w;
	struct reply r;
	struct buf b;
	bool link;

	params_path(&b, &w, "path", path);
	json_end(&w, '}');
	call(c->ctl, "fs/getMetadata", &b, EXECD_REPEAT, &r);
	link = execd_json_bool(json_get(r.result, "isSymlink"), false);
	reply_clear(&r);
	return link;
}

static void download_directory(
    struct copy *c, const char *from, const char *to, int depth);

static void
download_entry(struct copy *c, const struct entry *e, const char *from,
    const char *to, int depth)
{
	_cleanup_free_ char *source = xasprintf("%s/%s", from, e->name);
	_cleanup_free_ char *target = xasprintf("%s/%s", to, e->name);

	copy_wait(c, COPY_ACTIVE - 1);
	if (e->file)
		copy_download(c, source, target);
	else if (!e->directory)
		copy_skipped(c, source, "neither a file nor a directory");
	else if (is_link(c, source))
		copy_skipped(c, source, "a link to a directory");
	else
		download_directory(c, source, target, depth + 1);
}

static void
download_directory(struct copy *c, const char *from, const char *to, int depth)
{
	struct directory d;

	if (depth > DEPTH_MAX) {
		copy_failed(c, from, "over 256 directories inside each other");
		return;
	}
	if (mkdir(to, 0777) < 0 && errno != EEXIST) {
		copy_failed(c, to, strerror(errno));
		c->stop |= errno == ENOSPC || errno == EDQUOT;
		return;
	}
	if (read_remote(c, from, &d))
		for (size_t i = 0; i < d.n && !c->stop; i++)
			download_entry(c, &d.entries[i], from, to, depth);
	for (size_t i = 0; i < d.n; i++)
		free(d.entries[i].name);
	free(d.entries);
}

void
copy_download_tree(struct copy *c, const char *from, const char *to)
{
	download_directory(c, from, to, 0);
}
