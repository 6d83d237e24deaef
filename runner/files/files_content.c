/* SPDX-License-Identifier: ISC */
/* What is in files: fs/readFile and fs/writeFile, and handles. */
#include "base.h"
#include "base64.h"
#include "files.h"

#define FILE_READ_MAX (512ull << 20) /* doc/protocol.md section 14 */
#define WHOLE_MAX     (1u << 20)  /* a file up to this size is read at once */
#define PIECE_BYTES   (96u << 10) /* divisible by 3: no padding inside */

static int
refuse_size(struct request *r)
{
	return reply_error(r->channel, &r->id, RPC_MALFORMED,
	    "file is too large to read: limit is %llu bytes", FILE_READ_MAX);
}

static void
relay_text(struct channel *ch, const char *s)
{
	channel_relay(ch, s, strlen(s));
}

/*
 * Fills the announced length with blanks if the file became shorter while it
 * was read. JSON permits blanks after a value.
 */
static void
relay_blanks(struct channel *ch)
{
	static const char blanks[] = "                                ";

	while (ch->relay_left > 0) {
		size_t n = ch->relay_left < sizeof(blanks) - 1
			       ? ch->relay_left
			       : sizeof(blanks) - 1;

		channel_relay(ch, blanks, n);
		channel_write_all(ch);
	}
}

/*
 * Sends a large file as it is read, in one frame whose length is known from the
 * file's size. So neither this process nor the runner holds the whole file.
 */
static int
stream(struct request *r, int fd, uint64_t size)
{
	_cleanup_free_ char *raw = xmalloc(PIECE_BYTES);
	_cleanup_free_ char *text = xmalloc(base64_encoded_len(PIECE_BYTES));
	static const char before[] = ",\"result\":{\"dataBase64\":\"";
	struct channel *ch = r->channel;
	uint64_t left = size;
	ssize_t n;

	/* An error here can still be answered. */
	if (pread(fd, raw, 1, 0) < 0)
		return reply_file_error(r, -errno);
	channel_relay_begin(
	    ch, (uint32_t)(strlen("{\"id\":") + r->id.len + strlen(before) +
			   base64_encoded_len(size) + strlen("\"}}")));
	relay_text(ch, "{\"id\":");
	channel_relay(ch, r->id.text, r->id.len);
	relay_text(ch, before);
	do {
		size_t want = left < PIECE_BYTES ? left : PIECE_BYTES;

		n = read_at(fd, raw, want, AT_POSITION);
		/*
		 * Half an answer cannot be taken back, so the connection ends.
		 */
		if (n < 0)
			_exit(1);
		channel_relay(ch, text, base64_encode(text, raw, (size_t)n));
		channel_write_all(ch);
		left -= (uint64_t)n;
	} while (n == (ssize_t)PIECE_BYTES && left > 0 && channel_is_open(ch));
	if (!channel_is_open(ch))
		return 0;
	relay_text(ch, "\"}}");
	relay_blanks(ch);
	return 0;
}

/*
 * Returns the size of a file that had more bytes than its size said when it was
 * opened. A file that grew has a size now; one in /proc is read to its end.
 */
static int64_t
measure(int fd)
{
	_cleanup_free_ char *scratch = xmalloc(PIECE_BYTES);
	uint64_t size = 0;
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > 0)
		return st.st_size;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while (n > 0 && size <= FILE_READ_MAX) {
		n = read_at(fd, scratch, PIECE_BYTES, AT_POSITION);
		size += n > 0 ? (uint64_t)n : 0;
	}
	return n < 0 ? n : (int64_t)size;
}

static int
read_long(struct request *r, int fd)
{
	int64_t size = measure(fd);

	if (size >= 0 && lseek(fd, 0, SEEK_SET) < 0)
		size = -errno;
	if (size < 0)
		return reply_file_error(r, (int)size);
	if ((uint64_t)size > FILE_READ_MAX)
		return refuse_size(r);
	return stream(r, fd, (uint64_t)size);
}

static int
reply_content(struct request *r, const struct buf *b)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_base64(&w, "dataBase64", b->data, b->len);
	reply_end(r->channel, &w);
	return 0;
}

/* Reads to the end, whatever the size says: files in /proc have none. */
static int
read_all(struct request *r, int fd)
{
	ssize_t n = PIECE_BYTES;
	struct buf b;

	buf_init(&b, WHOLE_MAX + PIECE_BYTES);
	while (n == PIECE_BYTES && b.len <= WHOLE_MAX) {
		n = read_at(
		    fd, buf_reserve(&b, PIECE_BYTES), PIECE_BYTES, AT_POSITION);
		if (n > 0)
			buf_commit(&b, (size_t)n);
	}
	if (n < 0)
		reply_file_error(r, (int)n);
	else if (b.len > WHOLE_MAX)
		read_long(r, fd);
	else
		reply_content(r, &b);
	buf_clear(&b);
	return 0;
}

int
file_fs_read_file(struct request *r, const struct fs_params *p)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	fd = open_regular(AT_FDCWD, p->path.path, O_RDONLY, &st);
	if (fd == -ENOTSUP)
		return reply_not_a_file(r, p->path.path);
	if (fd < 0)
		return reply_file_error(r, fd);
	if ((uint64_t)st.st_size > FILE_READ_MAX)
		return refuse_size(r);
	if (st.st_size <= WHOLE_MAX)
		return read_all(r, fd);
	return stream(r, fd, (uint64_t)st.st_size);
}

/* Writes the content of the spool, or n bytes. */
static int
write_content(int fd, const struct spool *spool, const char *bytes, size_t n)
{
	return spool != NULL ? spool_copy(spool, fd)
			     : write_at(fd, bytes, n, AT_POSITION);
}

int
file_fs_write_file(struct request *r, const struct fs_params *p)
{
	/* Decodes in place: the text is ours, and nobody reads it again. */
	char *bytes = (char *)(uintptr_t)p->data.ptr;
	_cleanup_close_ int fd = -1;
	char error[BASE64_ERROR_MAX];
	ssize_t n = base64_decode(bytes, p->data.ptr, p->data.len, error);
	struct stat st;
	int err;

	if (n < 0)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "fs/writeFile requires valid base64 dataBase64: %s", error);
	fd = open_regular(AT_FDCWD, p->path.path,
	    O_WRONLY | O_CREAT | O_TRUNC | OPEN_DEVICE, &st);
	if (fd == -ENOTSUP)
		return reply_not_a_file(r, p->path.path);
	if (fd < 0)
		return reply_file_error(r, fd);
	err = write_content(fd, r->spool, bytes, (size_t)n);
	/* Some file systems report a full disk only here. */
	if (close(steal_fd(&fd)) < 0 && err == 0)
		err = -errno;
	return reply_done(r, err);
}

/* --- handles ------------------------------------------------------------ */

/*
 * fs/open, fs/readBlock, fs/writeBlock, fs/close: file handles of the
 * connection.
 */

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
reply_handle(struct request *r, const struct fs_params *p, off_t size)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_string(&w, "handleId", p->handle_id.ptr, p->handle_id.len);
	if (p->append)
		json_key_u64(&w, "size", (uint64_t)size);
	reply_end(r->channel, &w);
	return 0;
}

int
file_fs_open(struct request *r, const struct fs_params *p)
{
	struct handle *h = &handles[count];
	int fd, flags = p->append    ? O_WRONLY
			: p->replace ? O_WRONLY | O_CREAT | O_TRUNC
				     : O_RDONLY;
	struct stat st;

	if (!check_open(r, p->handle_id))
		return 0;
	fd = open_regular(AT_FDCWD, p->path.path, flags, &st);
	if (fd == -ENOTSUP)
		return reply_not_a_file(r, p->path.path);
	if (fd < 0)
		return reply_file_error(r, fd);
	h->fd = fd;
	h->id_len = p->handle_id.len;
	memcpy(h->id, p->handle_id.ptr, p->handle_id.len);
	count++;
	return reply_handle(r, p, st.st_size);
}

static int
reply_block(struct request *r, const void *p, size_t n, bool eof)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	json_key_base64(&w, "chunk", p, n);
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
