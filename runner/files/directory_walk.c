/* SPDX-License-Identifier: ISC */
/* Walks a tree, and tells a client its entries. */
#include "base.h"
#include "files.h"

#include "queue.h"
#include "siphash.h"
#include "table.h"

/* A directory that is not read yet. */
struct pending_directory {
	STAILQ_ENTRY(pending_directory) link; /* walk.queue */
	uint64_t depth;
	char path[];
};

/* A directory that is or was in the queue. */
struct visited {
	struct table_node node;
	dev_t device;
	ino_t inode;
};

struct walk {
	const struct fs_walk_options *options;
	const char *top; /* its path */
	int top_fd;
	const struct directory_visitor *visitor;
	STAILQ_HEAD(, pending_directory) queue;
	struct table visited;
	uint64_t entry_count, directory_count;
	bool truncated;
};

static bool
match_inode(const struct table_node *node, const void *key)
{
	const struct visited *v =
	    TABLE_OBJECT(node, const struct visited, node);
	const struct stat *st = key;

	return v->device == st->st_dev && v->inode == st->st_ino;
}

static uint64_t
hash_inode(const struct stat *st)
{
	uint64_t pair[2] = { st->st_dev, st->st_ino };

	return siphash_bytes(pair, sizeof(pair));
}

/* Returns false if the directory was visited before. */
static bool
visit(struct walk *w, const struct stat *st)
{
	struct visited *v;

	if (table_find(&w->visited, hash_inode(st), match_inode, st) != NULL)
		return false;
	v = xcalloc(1, sizeof(*v));
	v->device = st->st_dev;
	v->inode = st->st_ino;
	table_insert(&w->visited, &v->node, hash_inode(st));
	return true;
}

static void
enqueue(struct walk *w, const char *path, uint64_t depth)
{
	struct pending_directory *d = xmalloc(sizeof(*d) + strlen(path) + 1);

	d->depth = depth;
	strcpy(d->path, path);
	STAILQ_INSERT_TAIL(&w->queue, d, link);
}

/* Ends the walk. Always returns false. */
static bool
stop(struct walk *w)
{
	w->truncated = true;
	return false;
}

static bool
note_error(struct walk *w, const char *path, int err)
{
	return w->visitor->error(w->visitor->ctx, path, err) || stop(w);
}

/* Returns false if no more entries may be told. */
static bool
note_entry(struct walk *w, const char *path, bool directory)
{
	if (w->entry_count++ == w->options->max_entries)
		return stop(w);
	return w->visitor->entry(w->visitor->ctx, path, directory) || stop(w);
}

/*
 * Links are left out, except links to directories if they are followed.
 * Anything that is neither file nor directory is left out.
 */
static bool
take_entry(struct walk *w, int dir_fd, const struct pending_directory *d,
    const char *name)
{
	_cleanup_free_ char *path =
	    xasprintf("%s/%s", strcmp(d->path, "/") == 0 ? "" : d->path, name);
	bool hidden = name[0] == '.' && w->options->prune_hidden;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return note_error(w, path, -errno);
	if (files_hides(dir_fd, name, &st))
		return true;
	if (S_ISLNK(st.st_mode) &&
	    (!w->options->follow_symlinks ||
		fstatat(dir_fd, name, &st, 0) < 0 || !S_ISDIR(st.st_mode)))
		return true;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return true;
	if (!note_entry(w, path, S_ISDIR(st.st_mode)))
		return false;
	if (S_ISDIR(st.st_mode) && !hidden &&
	    d->depth < w->options->max_depth && visit(w, &st))
		enqueue(w, path, d->depth + 1);
	return true;
}

/*
 * Opens name by name from the top, through no link, so that nobody who changes
 * the tree meanwhile leads the walk out of it.
 */
static int
open_unfollowed(int top_fd, const char *below)
{
	_cleanup_free_ char *copy = xstrdup(below);
	_cleanup_close_ int up = -1;
	char *rest = copy;
	int fd = fcntl(top_fd, F_DUPFD_CLOEXEC, 0);

	while (fd >= 0 && rest != NULL && *rest != '\0') {
		const char *name = strsep(&rest, "/");

		if (up >= 0)
			close(up);
		up = fd;
		fd = openat(up, name, rest != NULL ? OPEN_PASSED : OPEN_LISTED);
	}
	return fd < 0 ? -errno : fd;
}

static int
open_directory(const struct walk *w, const struct pending_directory *d)
{
	const char *below = d->path + strlen(w->top);
	int fd;

	if (*below == '/')
		below++;
	if (*below == '\0' || !w->options->follow_symlinks)
		return open_unfollowed(w->top_fd, below);
	fd = open(d->path, OPEN_LISTED & ~O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* Returns false if the walk has reached a limit. */
static bool
read_directory(struct walk *w, const struct pending_directory *d)
{
	struct names names = { 0 };
	_cleanup_close_ int fd = open_directory(w, d);
	bool go_on = true;
	int err;

	if (fd < 0)
		return note_error(w, d->path, fd);
	err = names_read_fd(fd, &names);
	if (err < 0)
		go_on = note_error(w, d->path, err);
	for (size_t i = 0; i < names.count && go_on; i++)
		go_on = take_entry(w, fd, d, names.all[i]);
	names_free(&names);
	return go_on;
}

static void
run(struct walk *w)
{
	struct pending_directory *d;
	bool go_on = true;

	while (go_on && (d = STAILQ_FIRST(&w->queue)) != NULL) {
		if (w->directory_count++ == w->options->max_directories) {
			w->truncated = true;
			break;
		}
		STAILQ_REMOVE_HEAD(&w->queue, link);
		go_on = read_directory(w, d);
		free(d);
	}
}

static void
walk_clear(struct walk *w)
{
	struct pending_directory *d;
	struct table_node *node;

	while ((d = STAILQ_FIRST(&w->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&w->queue, link);
		free(d);
	}
	while ((node = table_next(&w->visited, NULL)) != NULL) {
		table_remove(&w->visited, node);
		free(TABLE_OBJECT(node, struct visited, node));
	}
	table_clear(&w->visited);
}

static void
walk_from(struct walk *w, const struct stat *st)
{
	bool follow = w->options->follow_symlinks;

	w->top_fd = open(w->top, OPEN_LISTED & ~(follow ? O_NOFOLLOW : 0));
	if (w->top_fd < 0) {
		note_error(w, w->top, -errno);
		return;
	}
	visit(w, st);
	enqueue(w, w->top, 0);
	run(w);
	close(w->top_fd);
}

bool
directory_walk(const char *top, const struct fs_walk_options *options,
    const struct directory_visitor *visitor)
{
	struct walk w = { .options = options, .top = top, .visitor = visitor };
	struct stat st;

	STAILQ_INIT(&w.queue);
	if (fstatat(AT_FDCWD, top, &st,
		options->follow_symlinks ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		note_error(&w, top, -errno);
	else if (S_ISDIR(st.st_mode))
		walk_from(&w, &st);
	walk_clear(&w);
	return w.truncated;
}

/* --- fs/walk ------------------------------------------------------------ */

/*
 * fs/walk: the entries of a tree, within the client's limits (doc/protocol.md
 * section 10).
 */

#define DEPTH_MAX	64 /* doc/protocol.md section 14 */
#define DIRECTORIES_MAX 10000
#define ENTRIES_MAX	50000
/*
 * Limit for the paths of one answer, as large as a message may be. Only a tree
 * that was built for it reaches the limit.
 */
#define TEXT_MAX_BYTES (64u << 20)

/* The answer, as it grows. */
struct listing {
	struct json_text entries, errors;
	uint64_t error_count;
};

static bool
is_full(const struct listing *l)
{
	return l->entries.buf.len + l->errors.buf.len > TEXT_MAX_BYTES;
}

static bool
list_error(void *ctx, const char *path, int err)
{
	struct listing *l = ctx;
	char message[128];

	if (l->error_count++ == ENTRIES_MAX || is_full(l))
		return false;
	snprintf(
	    message, sizeof(message), "%s (os error %d)", strerror(-err), -err);
	json_begin(&l->errors.w, '{');
	json_key_path(&l->errors.w, "path", path);
	json_key_cstring(&l->errors.w, "message", message);
	json_end(&l->errors.w, '}');
	return true;
}

static bool
list_entry(void *ctx, const char *path, bool directory)
{
	struct listing *l = ctx;

	if (is_full(l))
		return false;
	json_begin(&l->entries.w, '{');
	json_key_path(&l->entries.w, "path", path);
	json_key_cstring(
	    &l->entries.w, "kind", directory ? "directory" : "file");
	json_end(&l->entries.w, '}');
	return true;
}

static int
reply_walk(struct request *r, const struct listing *l, bool truncated)
{
	struct json_writer out = reply_begin(r->channel, &r->id);

	json_key_begin(&out, "entries", '[');
	json_text_put(&out, &l->entries);
	json_end(&out, ']');
	json_key_begin(&out, "errors", '[');
	json_text_put(&out, &l->errors);
	json_end(&out, ']');
	json_key_bool(&out, "truncated", truncated);
	reply_end(r->channel, &out);
	return 0;
}

/* Answers and returns false if a limit is not valid. */
static bool
check_limits(struct request *r, const struct fs_walk_options *o)
{
	if (o->max_directories == 0 || o->max_entries == 0)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "filesystem walk limits must be greater than zero");
	else if (o->max_depth > DEPTH_MAX ||
		 o->max_directories > DIRECTORIES_MAX ||
		 o->max_entries > ENTRIES_MAX)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "filesystem "
		    "walk limits exceed maximums: depth=%d, directories=%d, "
		    "entries=%d",
		    DEPTH_MAX, DIRECTORIES_MAX, ENTRIES_MAX);
	else
		return true;
	return false;
}

int
file_fs_walk(struct request *r, const struct fs_params *p)
{
	struct listing l = { 0 };
	const struct directory_visitor visitor = { list_entry, list_error, &l };
	struct stat st;

	if (!check_limits(r, &p->walk))
		return 0;
	if (fstatat(AT_FDCWD, p->path.path, &st,
		p->walk.follow_symlinks ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return reply_file_error(r, -errno);
	json_text_init(&l.entries, 1u << 30);
	json_text_init(&l.errors, 1u << 30);
	reply_walk(r, &l, directory_walk(p->path.path, &p->walk, &visitor));
	buf_clear(&l.entries.buf);
	buf_clear(&l.errors.buf);
	return 0;
}
