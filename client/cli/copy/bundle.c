/* SPDX-License-Identifier: ISC */
/*
 * Copies the small files of a tree to the server as one stream, which tar(1)
 * there unpacks into a new directory beside their place. When all of it has
 * arrived, it is renamed into place: a directory that is new there as a whole,
 * a file in a directory that was there by itself. So what was there before
 * stays as it was until the new is complete, and requests are few.
 *
 * Some files do not fit into the stream, and some cannot be renamed. They are
 * copied one by one afterwards. The result is the same without the stream: it
 * only saves time.
 */
#include <fts.h>

#include "base.h"
#include "capabilities.h"
#include "file_replace.h"
#include "jsonrpc.h"
#include "path_uri.h"
#include "tar.h"
#include "tar_process.h"

#define MOVES_MAX 256 /* requests under way */

/* What is done with a name when the stream has been unpacked. */
enum after {
	AFTER_MOVE,    /* it is in the stream, and is renamed into place */
	AFTER_FILE,    /* it is copied by itself */
	AFTER_LINK,    /* likewise */
	AFTER_FACTS,   /* a directory: mode and time are set at the end */
	AFTER_FAILED,  /* it could not be read */
	AFTER_SKIPPED, /* it is neither a file nor a directory */
};

struct parcel {
	TAILQ_ENTRY(parcel) link; /* bundle.parcels */
	struct bundle *bundle;
	enum after after;
	char *from;	/* here; owned */
	char *name;	/* below the top of the tree, with a slash; owned */
	int error;	/* AFTER_FAILED: its errno */
	bool directory; /* AFTER_MOVE: with all of `files` */
	bool replaces;	/* AFTER_MOVE: a file of that name is there */
	bool undone;	/* AFTER_MOVE: it could not be renamed */
	mode_t mode;	/* AFTER_MOVE: of a file that replaces another */
	unsigned int files;
	struct facts facts;
};

struct bundle {
	struct copy *copy;
	const char *from; /* the top here */
	char *to;	  /* the top there, without a slash at the end; owned */
	bool fresh;	  /* the top is new there */
	char *staging;	  /* where it is unpacked; owned; NULL: nowhere */
	TAILQ_HEAD(, parcel) parcels;
	struct parcel *inside; /* the new directory that is read now, or NULL */
	struct remote_directory *directories; /* being read; owned, a stack */
	uint8_t *content;		      /* of one file; owned */
	struct tar_process tar;
};

/* --- The process there --------------------------------------------------- */

/* While it unpacks, it has nothing to say here. */
static void
on_output(void *arg, const void *data, size_t len)
{
	(void)data;
	(void)len;
	tar_process_break(arg, "it writes something");
}

/* The process makes sure that it begins in the directory that was made for it.
 */
static bool
start_tar(struct bundle *b)
{
	bool keep = b->copy->preserve;
	const char *options[] = { strrchr(b->staging, '/') + 1, "-x", "-f", "-",
		"--no-same-owner", "--warning=no-timestamp", keep ? "-p" : "-m",
		keep ? NULL : "--no-same-permissions", NULL };

	tar_process_start(&b->tar, b->staging,
	    "[ \"${PWD##*/}\" = \"$1\" ] ||"
	    " { echo 'it begins in another directory' >&2; exit 126; }\n"
	    "shift",
	    options);
	return tar_process_goes_on(&b->tar);
}

static bool
unpacked(struct bundle *b)
{
	tar_put_end(&b->tar.out);
	return tar_process_end(&b->tar);
}

/* --- Where it is unpacked ------------------------------------------------- */

static bool
ask_done(struct bundle *b, const char *method, struct json_text *params)
{
	struct reply r;
	bool done;

	call(b->copy->ctl, method, params, EXECD_REPEAT, &r);
	done = r.code == 0;
	if (!done)
		tar_process_break(&b->tar, r.message);
	reply_clear(&r);
	return done;
}

/* Only the user can read what is there before it is complete. */
static bool
make_staging(struct bundle *b)
{
	_cleanup_free_ char *inside = xasprintf("%s/.", b->to);
	char *path = temporary_beside(b->fresh ? b->to : inside);
	struct json_text t;

	params_begin(&t, "path", path);
	if (!ask_done(b, "fs/createDirectory", &t)) {
		free(path);
		return false;
	}
	b->staging = path;
	params_begin(&t, "path", path);
	json_key_u64(&t.w, "mode", 0700);
	return ask_done(b, "fs/chmod", &t);
}

/* Finds out what is there under the name of the tree. */
static bool
look_there(struct bundle *b)
{
	struct reply r;
	bool usable;

	call_path(b->copy->ctl, "fs/getMetadata", b->to, &r);
	b->fresh = r.code == RPC_NOT_FOUND;
	usable = b->fresh ||
		 execd_json_bool(json_get(r.result, "isDirectory"), false);
	reply_clear(&r);
	return usable;
}

/* A signal ends the program: then copy_give_up() removes it, and does not wait
 * for long. */
static void
remove_staging(struct bundle *b)
{
	struct copy *c = b->copy;
	struct json_text t;

	if (b->staging == NULL)
		return;
	if (c->signal != 0) {
		c->staging = b->staging;
		b->staging = NULL;
		return;
	}
	params_begin(&t, "path", b->staging);
	json_key_bool(&t.w, "force", true);
	if (!ask_done(b, "fs/remove", &t))
		execctl_say(":%s may be left there, incomplete", b->staging);
}

/* --- What is in the tree -------------------------------------------------- */

static struct parcel *
parcel_new(
    struct bundle *b, enum after after, const char *from, const char *name)
{
	struct parcel *p = xcalloc(1, sizeof(*p));

	p->bundle = b;
	p->after = after;
	p->from = xstrdup(from);
	p->name = xstrdup(name);
	TAILQ_INSERT_TAIL(&b->parcels, p, link);
	return p;
}

static void
put_entry(struct bundle *b, enum tar_type type, const char *name,
    const char *target, const struct stat *st, mode_t mode, size_t size)
{
	_cleanup_free_ char *member = xasprintf(".%s", name);

	tar_put_entry(&b->tar.out,
	    &(struct tar_entry){ .type = type,
		.name = member,
		.target = target,
		.mode = mode,
		.size = size,
		.modified = b->copy->preserve ? &st->st_mtim : NULL });
	if (size > 0)
		buf_put(&b->tar.out, b->content, size);
	tar_pad(&b->tar.out, size);
	b->copy->bytes += size;
	copy_show(b->copy, name + (name[0] == '/'));
	tar_process_send(&b->tar);
}

static bool
has_holes(int fd, const struct stat *st)
{
	if (st->st_blocks * 512 >= st->st_size)
		return false;
	return lseek(fd, 0, SEEK_HOLE) < st->st_size &&
	       lseek(fd, 0, SEEK_SET) == 0;
}

/* Reads a file that fits into the stream. All of it is in memory before its
 * header says how long it is, so it may change meanwhile. Returns its size, or
 * -1 if it goes by itself: it is large, has holes, or has what -p has to
 * report.
 */
static ssize_t
read_small(struct bundle *b, const char *path, struct stat *st)
{
	_cleanup_close_ int fd =
	    open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t len = 0;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, st) < 0 || !S_ISREG(st->st_mode) ||
	    st->st_size > SMALL_BYTES || has_holes(fd, st))
		return -1;
	if (b->copy->preserve &&
	    ((st->st_mode & 07000) != 0 || file_has_attributes(fd, NULL)))
		return -1;
	while (n > 0 && len <= SMALL_BYTES) {
		n = pread(
		    fd, b->content + len, SMALL_BYTES + 1 - len, (off_t)len);
		len += n > 0 ? (size_t)n : 0;
	}
	return n < 0 || len > SMALL_BYTES ? -1 : (ssize_t)len;
}

/* there: what the directory there has under the name; NULL: nothing, or the
 * directory is new. */
static void
pack_file(struct bundle *b, const char *from, const char *name,
    const struct remote_entry *there)
{
	struct stat st;
	bool plain = there == NULL || (there->file && !there->link);
	ssize_t n = plain ? read_small(b, from, &st) : -1;
	struct parcel *p = b->inside;

	if (n < 0) {
		parcel_new(b, AFTER_FILE, from, name);
		return;
	}
	if (p == NULL) {
		p = parcel_new(b, AFTER_MOVE, from, name);
		p->replaces = there != NULL;
		p->mode = st.st_mode & 0777;
	}
	p->files++;
	execctl_tell(b->copy->ctl, "%s -> :%s%s", from, b->to, name);
	put_entry(b, TAR_FILE, name, NULL, &st, st.st_mode & 0777, (size_t)n);
}

/* A link to a file is copied as that file. */
static void
pack_link(struct bundle *b, const FTSENT *e, const char *name,
    const struct remote_entry *there)
{
	char target[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (stat(e->fts_accpath, &st) == 0 && S_ISREG(st.st_mode)) {
		pack_file(b, e->fts_accpath, name, there);
		return;
	}
	n = readlink(e->fts_accpath, target, sizeof(target) - 1);
	if (b->inside == NULL || n < 0) {
		parcel_new(b, AFTER_LINK, e->fts_accpath, name);
		return;
	}
	target[n] = '\0';
	b->inside->files++;
	execctl_tell(b->copy->ctl, "%s -> :%s%s", e->fts_path, b->to, name);
	put_entry(b, TAR_SYMLINK, name, target, e->fts_statp, 0777, 0);
}

/* A directory that is new there. Its owner can move it whatever its mode is in
 * the end. */
static void
pack_new_directory(struct bundle *b, FTSENT *e, const char *name)
{
	mode_t mode = e->fts_statp->st_mode & 0777;
	bool top = b->inside == NULL && name[0] != '\0';
	bool reports =
	    b->copy->preserve && ((e->fts_statp->st_mode & 07000) != 0 ||
				     file_has_attributes(-1, e->fts_accpath));

	if (b->inside == NULL) {
		b->inside = parcel_new(b, AFTER_MOVE, e->fts_accpath, name);
		b->inside->directory = true;
		e->fts_number = 1;
	}
	if (reports || (top && (mode & 0200) == 0)) {
		struct parcel *p =
		    parcel_new(b, AFTER_FACTS, e->fts_accpath, name);

		facts_of_local(&p->facts, e->fts_statp);
		p->facts.attributes =
		    reports && file_has_attributes(-1, e->fts_accpath);
	}
	put_entry(b, TAR_DIRECTORY, name, NULL, e->fts_statp,
	    top ? mode | 0200 : mode, 0);
}

/* A directory that is there already: what is in it is needed. */
static void
pack_old_directory(struct bundle *b, FTSENT *e, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s%s", b->to, name);
	struct remote_directory *d = xcalloc(1, sizeof(*d));
	struct parcel *p;

	e->fts_pointer = d;
	d->up = b->directories;
	b->directories = d;
	if (!remote_directory_list(b->copy, path, d)) {
		tar_process_break(&b->tar, "a directory there is not listed");
		return;
	}
	if (b->copy->preserve) {
		p = parcel_new(b, AFTER_FACTS, e->fts_accpath, name);
		facts_of_local(&p->facts, e->fts_statp);
		p->facts.attributes = file_has_attributes(-1, e->fts_accpath);
	}
	if (name[0] != '\0')
		put_entry(b, TAR_DIRECTORY, name, NULL, e->fts_statp, 0700, 0);
}

static void
pack_directory(struct bundle *b, FTSENT *e, const char *name,
    const struct remote_entry *there)
{
	bool top = name[0] == '\0';

	if (top ? b->fresh : b->inside != NULL || there == NULL)
		pack_new_directory(b, e, name);
	else if (top || there->directory)
		pack_old_directory(b, e, name);
	else
		tar_process_break(&b->tar, "no directory where one should be");
}

static void
drop_listing(struct bundle *b)
{
	struct remote_directory *d = b->directories;

	b->directories = d->up;
	remote_directory_clear(d);
	free(d);
}

/* Does nothing for what is no directory. */
static void
leave_directory(struct bundle *b, FTSENT *e)
{
	if (e->fts_number == 1)
		b->inside = NULL;
	if (e->fts_pointer != NULL)
		drop_listing(b);
	e->fts_number = 0;
	e->fts_pointer = NULL;
}

static void
pack_entry(struct bundle *b, FTSENT *e)
{
	const char *name = e->fts_path + strlen(b->from);
	const struct remote_directory *d =
	    e->fts_level > 0 ? e->fts_parent->fts_pointer : NULL;
	const struct remote_entry *there =
	    d != NULL ? remote_directory_find(d, e->fts_name) : NULL;
	struct parcel *p;

	switch (e->fts_info) {
	case FTS_D:
		pack_directory(b, e, name, there);
		break;
	case FTS_DP:
		leave_directory(b, e);
		break;
	case FTS_F:
		pack_file(b, e->fts_accpath, name, there);
		break;
	case FTS_SL:
	case FTS_SLNONE:
		pack_link(b, e, name, there);
		break;
	case FTS_DNR:
	case FTS_NS:
	case FTS_ERR:
		p = parcel_new(b, AFTER_FAILED, e->fts_path, name);
		p->error = e->fts_errno;
		leave_directory(b, e);
		break;
	default:
		parcel_new(b, AFTER_SKIPPED, e->fts_path, name);
		break;
	}
}

static bool
pack_tree(struct bundle *b)
{
	char *roots[] = { (char *)(uintptr_t)b->from, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	FTSENT *e;

	if (fts == NULL)
		return false;
	while (tar_process_goes_on(&b->tar) &&
	       (errno = 0, e = fts_read(fts)) != NULL)
		pack_entry(b, e);
	if (tar_process_goes_on(&b->tar) && errno != 0)
		tar_process_break(&b->tar, strerror(errno));
	fts_close(fts);
	return tar_process_goes_on(&b->tar);
}

/* --- What is done with it when it is there -------------------------------- */

static void
moved(void *arg, const struct execd_answer *a)
{
	struct parcel *p = arg;
	struct copy *c = p->bundle->copy;
	char what[128];

	c->active--;
	/* If the request was repeated after a lost connection, the first one
	 * may have moved it. */
	if (a->code != 0 && !(a->repeated && a->code == RPC_NOT_FOUND)) {
		execctl_tell(c->ctl, "%s: %s", p->from, a->message);
		p->undone = true;
		return;
	}
	c->files += p->files;
	if (p->name[0] == '\0') {
		free(p->bundle->staging);
		p->bundle->staging = NULL;
	}
	if (json_get(a->result, "notKept") != NULL)
		copy_unkept(c, p->from,
		    value_string(
			json_get(a->result, "notKept"), what, sizeof(what)));
}

static void
move(struct bundle *b, struct parcel *p)
{
	_cleanup_free_ char *from = xasprintf("%s%s", b->staging, p->name);
	_cleanup_free_ char *to = xasprintf("%s%s", b->to, p->name);
	struct copy *c = b->copy;
	struct json_text t;

	params_begin(&t, "sourcePath", from);
	json_key_path(&t.w, "destinationPath", to);
	json_key_bool(&t.w, "overwrite", p->replaces);
	if (p->replaces)
		json_key_bool(&t.w, "keepAttributes", true);
	if (p->replaces && (c->preserve || (p->mode & 0111) != 0))
		json_key_u64(&t.w, "mode", p->mode);
	c->active++;
	ask(c->ctl, "fs/move", &t, moved, p);
}

/* What goes by itself, also because it could not be moved. */
static void
finish_parcel(struct bundle *b, struct parcel *p)
{
	_cleanup_free_ char *to = xasprintf("%s%s", b->to, p->name);
	struct copy *c = b->copy;

	copy_wait(c, COPY_ACTIVE - 1);
	if (p->after == AFTER_FILE || (p->undone && !p->directory))
		copy_upload(c, p->from, to);
	else if (p->undone)
		copy_upload_each(c, p->from, to);
	else if (p->after == AFTER_LINK)
		copy_upload_link(c, p->from, to);
	else if (p->after == AFTER_FACTS)
		copy_later(c, to, NULL, &p->facts);
	else if (p->after == AFTER_FAILED)
		copy_failed(c, p->from, strerror(p->error));
	else if (p->after == AFTER_SKIPPED)
		copy_skipped(c, p->from, "neither a file nor a directory");
}

static void
deliver(struct bundle *b)
{
	struct copy *c = b->copy;
	struct parcel *p;

	TAILQ_FOREACH (p, &b->parcels, link) {
		copy_wait(c, MOVES_MAX - 1);
		if (p->after == AFTER_MOVE && !c->stop)
			move(b, p);
	}
	copy_wait(c, 0);
	TAILQ_FOREACH (p, &b->parcels, link)
		if (!c->stop)
			finish_parcel(b, p);
}

/* --- All of it ------------------------------------------------------------ */

static bool
is_worth_it(const char *from)
{
	char *roots[] = { (char *)(uintptr_t)from, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	unsigned int files = 0;
	FTSENT *e;

	if (fts == NULL)
		return false;
	while (files < WORTH_FILES && (e = fts_read(fts)) != NULL)
		files += e->fts_info == FTS_F &&
			 e->fts_statp->st_size <= SMALL_BYTES;
	fts_close(fts);
	return files == WORTH_FILES;
}

static bool
is_possible(const struct copy *c)
{
	static const char *const needed[] = { CAN_MOVE_KEEP, CAN_CHMOD,
		CAN_SYMLINK, CAN_DETAILS, CAN_CLOSE_STDIN };

	for (size_t i = 0; i < nitems(needed); i++)
		if (!execd_client_can(c->ctl->client, needed[i]))
			return false;
	return true;
}

static void
bundle_clear(struct bundle *b)
{
	struct parcel *p;

	tar_process_clear(&b->tar);
	remove_staging(b);
	while (b->directories != NULL)
		drop_listing(b);
	while ((p = TAILQ_FIRST(&b->parcels)) != NULL) {
		TAILQ_REMOVE(&b->parcels, p, link);
		free(p->from);
		free(p->name);
		free(p);
	}
	free(b->content);
	free(b->staging);
	free(b->to);
}

bool
copy_bundle(struct copy *c, const char *from, const char *to)
{
	struct bundle b = { .copy = c, .from = from, .to = xstrdup(to) };
	uint64_t before = c->bytes;
	bool sent;

	if (!is_possible(c) || !is_worth_it(from)) {
		free(b.to);
		return false;
	}
	while (b.to[1] != '\0' && b.to[strlen(b.to) - 1] == '/')
		b.to[strlen(b.to) - 1] = '\0';
	TAILQ_INIT(&b.parcels);
	tar_process_init(&b.tar, c, on_output, &b.tar);
	b.content = xmalloc(SMALL_BYTES + 1);
	sent = look_there(&b) && make_staging(&b) && start_tar(&b) &&
	       pack_tree(&b) && unpacked(&b);
	if (sent) {
		execctl_tell(c->ctl, "%s: sent as one stream", from);
		deliver(&b);
	} else if (execd_client_state(c->ctl->client) == EXECD_OVER) {
		copy_failed(c, from, tar_process_why(&b.tar));
		c->code = EXIT_CTL_UNKNOWN;
		c->stop = true;
	} else if (!c->stop) {
		c->bytes = before;
		execctl_tell(c->ctl,
		    "%s: not as one stream, but file by file: %s", from,
		    tar_process_why(&b.tar));
	}
	bundle_clear(&b);
	return sent || c->stop;
}
