/*
 * Directories, either way.
 */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capabilities.h"
#include "copy.h"
#include "path_uri.h"
#include "utf8.h"

#define DEPTH_MAX 256 /* of the server's directories */

/* --- To the server ------------------------------------------------------ */

struct made {
	struct copy *copy;
	char *path;
	bool link;
};

static void
made_answered(void *arg, const struct execd_answer *a)
{
	struct made *m = arg;

	m->copy->active--;
	/* Repeated after a lost connection: the first one had worked. */
	if (m->link && a->repeated && a->code != 0 &&
	    strstr(a->message, "(os error 17)") != NULL)
		m->copy->files++;
	else if (a->code != 0)
		copy_failed(m->copy, m->path, a->message);
	else if (m->link)
		m->copy->files++;
	free(m->path);
	free(m);
}

/* Sends params that params_path() began. */
static void
make_remote(struct copy *c, const char *method, const char *path, struct buf *b,
    struct json_writer *w, bool link)
{
	struct made *m = xmalloc(sizeof(*m));

	*m = (struct made){ c, xstrdup(path), link };
	json_end(w, '}');
	c->active++;
	execd_client_request(c->ctl->client, method, (const char *)b->data,
	    b->len, EXECD_REPEAT, made_answered, m);
	buf_clear(b);
}

/* What is written below it is sent behind it, and served behind it. */
static void
make_directory(struct copy *c, const char *path)
{
	struct json_writer w;
	struct buf b;

	params_path(&b, &w, "path", path);
	make_remote(c, "fs/createDirectory", path, &b, &w, false);
}

static void
make_link(struct copy *c, const FTSENT *e, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(e->fts_accpath, target, sizeof(target));
	struct json_writer w;
	struct buf b;

	if (n < 0) {
		copy_failed(c, e->fts_path, strerror(errno));
		return;
	}
	if (utf8_check(0, (const uint8_t *)target, (size_t)n) != 0) {
		copy_skipped(c, e->fts_path, "a link whose text is not UTF-8");
		return;
	}
	params_path(&b, &w, "path", path);
	json_key(&w, "target");
	json_string(&w, target, (size_t)n);
	make_remote(c, "fs/symlink", path, &b, &w, true);
}

/* A link to a file is copied as that file, as cp(1) without options would;
 * any other as a link, where the server can. */
static void
upload_link(struct copy *c, const FTSENT *e, const char *to)
{
	bool can = execd_client_can(c->ctl->client, CAN_SYMLINK);
	struct stat st;
	bool dangling = stat(e->fts_accpath, &st) < 0;

	if (!dangling && S_ISREG(st.st_mode))
		copy_upload(c, e->fts_accpath, to);
	else if (can)
		make_link(c, e, to);
	else
		copy_skipped(c, e->fts_path,
		    dangling ? "a link to nothing, and this server makes no "
			       "links"
			     : "a link to what is no file, and this server "
			       "makes no links");
}

static void
upload_entry(struct copy *c, const FTSENT *e, const char *to)
{
	switch (e->fts_info) {
	case FTS_D:
		make_directory(c, to);
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
