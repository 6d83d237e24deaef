/*
 * fs/walk: breadth first, each directory's entries by name, within the
 * client's limits (PROTOCOL.md section 10).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "queue.h"
#include "table.h"

#define DEPTH_MAX	64 /* PROTOCOL.md section 14 */
#define DIRECTORIES_MAX 10000
#define ENTRIES_MAX	50000

/* A directory still to be read. */
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
	struct json_writer entries;
	struct buf entries_text, errors_text;
	struct json_writer errors;
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

/* False: it was visited before. */
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

static void
note_error(struct walk *w, const char *path, int err)
{
	char message[128];

	snprintf(
	    message, sizeof(message), "%s (os error %d)", strerror(-err), -err);
	json_begin(&w->errors, '{');
	json_key(&w->errors, "path");
	json_path(&w->errors, path);
	json_key(&w->errors, "message");
	json_cstring(&w->errors, message);
	json_end(&w->errors, '}');
}

/* False: no more entries may be listed. */
static bool
note_entry(struct walk *w, const char *path, bool directory)
{
	if (w->entry_count == w->options->max_entries) {
		w->truncated = true;
		return false;
	}
	w->entry_count++;
	json_begin(&w->entries, '{');
	json_key(&w->entries, "path");
	json_path(&w->entries, path);
	json_key(&w->entries, "kind");
	json_cstring(&w->entries, directory ? "directory" : "file");
	json_end(&w->entries, '}');
	return true;
}

/* Links are left out, but for those to directories when they are followed;
 * what is neither file nor directory never appears. */
static bool
take_entry(struct walk *w, int dir_fd, const struct pending_directory *d,
    const char *name)
{
	_cleanup_free_ char *path =
	    xasprintf("%s/%s", strcmp(d->path, "/") == 0 ? "" : d->path, name);
	bool hidden = name[0] == '.' && w->options->prune_hidden;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		note_error(w, path, -errno);
		return true;
	}
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

/* False: the walk is at its limit. */
static bool
read_directory(struct walk *w, const struct pending_directory *d)
{
	struct names names = { 0 };
	DIR *dir = opendir(d->path);
	bool go_on = true;
	int err;

	if (dir == NULL) {
		note_error(w, d->path, -errno);
		return true;
	}
	err = names_read(dir, &names);
	if (err < 0)
		note_error(w, d->path, err);
	for (size_t i = 0; i < names.count && go_on; i++)
		go_on = take_entry(w, dirfd(dir), d, names.all[i]);
	names_free(&names);
	closedir(dir);
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
	while ((node = table_any(&w->visited)) != NULL) {
		table_remove(&w->visited, node);
		free(TABLE_OBJECT(node, struct visited, node));
	}
	table_clear(&w->visited);
	buf_clear(&w->entries_text);
	buf_clear(&w->errors_text);
}

static int
reply_walk(struct request *r, const struct walk *w)
{
	struct json_writer out = reply_begin(r->channel, &r->id);

	json_begin(&out, '{');
	json_key(&out, "entries");
	json_begin(&out, '[');
	json_raw(&out, (const char *)w->entries_text.data, w->entries_text.len);
	json_end(&out, ']');
	json_key(&out, "errors");
	json_begin(&out, '[');
	json_raw(&out, (const char *)w->errors_text.data, w->errors_text.len);
	json_end(&out, ']');
	json_key(&out, "truncated");
	json_bool(&out, w->truncated);
	json_end(&out, '}');
	reply_end(r->channel, &out);
	return 0;
}

/* Answers and returns false when a limit is none. */
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
	struct walk w = { .options = &p->walk };
	struct stat st;

	if (!check_limits(r, &p->walk))
		return 0;
	if (lstat(p->path.path, &st) < 0)
		return reply_file_error(r, -errno);
	STAILQ_INIT(&w.queue);
	buf_init(&w.entries_text, 1u << 30);
	buf_init(&w.errors_text, 1u << 30);
	json_writer_init(&w.entries, &w.entries_text);
	json_writer_init(&w.errors, &w.errors_text);
	if (S_ISDIR(st.st_mode)) {
		visit(&w, &st);
		enqueue(&w, p->path.path, 0);
		run(&w);
	}
	reply_walk(r, &w);
	walk_clear(&w);
	return 0;
}
