/* SPDX-License-Identifier: ISC */
/*
 * fs/walk: the entries of a tree, within the client's limits (doc/protocol.md
 * section 10).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "directory_walk.h"
#include "files.h"

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
	struct buf entries_text, errors_text;
	struct json_writer entries, errors;
	uint64_t error_count;
};

static bool
is_full(const struct listing *l)
{
	return l->entries_text.len + l->errors_text.len > TEXT_MAX_BYTES;
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
	json_begin(&l->errors, '{');
	json_key(&l->errors, "path");
	json_path(&l->errors, path);
	json_key_cstring(&l->errors, "message", message);
	json_end(&l->errors, '}');
	return true;
}

static bool
list_entry(void *ctx, const char *path, bool directory)
{
	struct listing *l = ctx;

	if (is_full(l))
		return false;
	json_begin(&l->entries, '{');
	json_key(&l->entries, "path");
	json_path(&l->entries, path);
	json_key_cstring(&l->entries, "kind", directory ? "directory" : "file");
	json_end(&l->entries, '}');
	return true;
}

static int
reply_walk(struct request *r, const struct listing *l, bool truncated)
{
	struct json_writer out = reply_begin(r->channel, &r->id);

	json_key(&out, "entries");
	json_begin(&out, '[');
	json_raw(&out, (const char *)l->entries_text.data, l->entries_text.len);
	json_end(&out, ']');
	json_key(&out, "errors");
	json_begin(&out, '[');
	json_raw(&out, (const char *)l->errors_text.data, l->errors_text.len);
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
	buf_init(&l.entries_text, 1u << 30);
	buf_init(&l.errors_text, 1u << 30);
	json_writer_init(&l.entries, &l.entries_text);
	json_writer_init(&l.errors, &l.errors_text);
	reply_walk(r, &l, directory_walk(p->path.path, &p->walk, &visitor));
	buf_clear(&l.entries_text);
	buf_clear(&l.errors_text);
	return 0;
}
