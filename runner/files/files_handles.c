/* SPDX-License-Identifier: ISC */
/*
 * fs/open, fs/readBlock, fs/writeBlock, fs/close: file handles of the
 * connection.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "files.h"

#define HANDLES_MAX	128 /* doc/protocol.md section 14 */
#define HANDLE_ID_MAX	32
#define BLOCK_MAX_BYTES 1048576

static struct handle {
	char id[HANDLE_ID_MAX];
	size_t id_len;
	int fd;
} handles[HANDLES_MAX];
static size_t count;

static struct handle *
find(struct slice id)
{
	for (size_t i = 0; i < count; i++)
		if (slice_equal(
			id, (struct slice){ handles[i].id, handles[i].id_len }))
			return &handles[i];
	return NULL;
}

static void
drop(struct handle *h)
{
	close(h->fd);
	*h = handles[--count];
}

void
file_handles_clear(void)
{
	while (count > 0)
		drop(&handles[0]);
}

static int
refuse_unknown(struct request *r, struct slice id)
{
	return reply_error(r->channel, &r->id, RPC_NOT_FOUND,
	    "unknown file handle `%.*s`", (int)id.len, id.ptr);
}

/* Checks that need no file. Answers and returns false if one fails. */
static bool
check_open(struct request *r, struct slice id)
{
	if (id.len > HANDLE_ID_MAX)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "file handle ID must not exceed %d bytes", HANDLE_ID_MAX);
	else if (find(id) != NULL)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "file handle `%.*s` already exists", (int)id.len, id.ptr);
	else if (count == HANDLES_MAX)
		reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "at most %d "
		    "file handles may be open per connection",
		    HANDLES_MAX);
	else
		return true;
	return false;
}

static int
reply_handle(struct request *r, struct slice id)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_string(&w, "handleId", id.ptr, id.len);
	reply_end(r->channel, &w);
	return 0;
}

int
file_fs_open(struct request *r, const struct fs_params *p)
{
	struct handle *h = &handles[count];
	struct stat st;
	int fd;

	if (!check_open(r, p->handle_id))
		return 0;
	fd = open_regular(AT_FDCWD, p->path.path,
	    p->replace ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, &st);
	if (fd == -ENOTSUP)
		return reply_not_a_file(r, p->path.path);
	if (fd < 0)
		return reply_file_error(r, fd);
	h->fd = fd;
	h->id_len = p->handle_id.len;
	memcpy(h->id, p->handle_id.ptr, p->handle_id.len);
	count++;
	return reply_handle(r, p->handle_id);
}

static int
reply_block(struct request *r, const void *p, size_t n, bool eof)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key(&w, "chunk");
	json_base64(&w, p, n);
	json_key_bool(&w, "eof", eof);
	reply_end(r->channel, &w);
	return 0;
}

int
file_fs_read_block(struct request *r, const struct fs_params *p)
{
	struct handle *h = find(p->handle_id);
	_cleanup_free_ char *block = NULL;
	ssize_t n = 0;

	if (p->len == 0 || p->len > BLOCK_MAX_BYTES)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "file read block length must be between 1 and %d",
		    BLOCK_MAX_BYTES);
	if (h == NULL)
		return refuse_unknown(r, p->handle_id);
	block = xmalloc(p->len);
	/* No file is as long as that, so there is nothing to read. */
	if (p->offset <= (uint64_t)INT64_MAX - BLOCK_MAX_BYTES)
		n = read_at(h->fd, block, p->len, (off_t)p->offset);
	if (n < 0) {
		drop(h);
		return reply_file_error(r, (int)n);
	}
	return reply_block(r, block, (size_t)n, (size_t)n < p->len);
}

int
file_fs_write_block(struct request *r, const struct fs_params *p)
{
	struct handle *h = find(p->handle_id);

	if (p->data.len == 0 || p->data.len > BLOCK_MAX_BYTES)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "file write block length must be between 1 and %d",
		    BLOCK_MAX_BYTES);
	if (p->offset > (uint64_t)INT64_MAX - p->data.len)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "file write range exceeds the signed 64-bit file offset "
		    "limit");
	if (h == NULL)
		return refuse_unknown(r, p->handle_id);
	return reply_done(
	    r, write_at(h->fd, p->data.ptr, p->data.len, (off_t)p->offset));
}

int
file_fs_close(struct request *r, const struct fs_params *p)
{
	struct handle *h = find(p->handle_id);

	if (h != NULL)
		drop(h);
	return reply_empty(r);
}
