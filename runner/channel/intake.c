/* SPDX-License-Identifier: ISC */
#include "intake.h"

#include <assert.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base64.h"
#include "heap.h"
#include "params.h"
#include "rights.h"

/* --- spools ------------------------------------------------------------- */

#define DIRECTORY  "/var/tmp"
#define COPY_BYTES (128u << 10)

/* O_EXCL: the file can never get a name. */
static int
open_file(void)
{
	int fd = open(DIRECTORY, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	return fd >= 0 ? fd : memfd_create("execd-spool", MFD_CLOEXEC);
}

/*
 * Makes an empty spool, which is counted in *count until it is freed. Returns
 * NULL with errno.
 */
static struct spool *
spool_new(unsigned *count)
{
	struct rlimit most;
	struct spool *s;
	int fd;

	/* With such a limit it would fail in the middle of a request. */
	if (getrlimit(RLIMIT_FSIZE, &most) < 0 ||
	    most.rlim_cur != RLIM_INFINITY) {
		errno = EFBIG;
		return NULL;
	}
	fd = open_file();
	if (fd < 0)
		return NULL;
	s = xmalloc(sizeof(*s));
	*s = (struct spool){ .fd = fd, .count = count };
	++*count;
	return s;
}

struct spool *
spool_adopt(int fd)
{
	struct spool *s = xmalloc(sizeof(*s));
	struct stat st;

	*s = (struct spool){ .fd = fd };
	if (fd >= 0 && fstat(fd, &st) == 0)
		s->bytes = (uint64_t)st.st_size;
	return s;
}

void
spool_free(struct spool *s)
{
	if (s == NULL)
		return;
	if (s->count != NULL)
		--*s->count;
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

/*
 * Appends n bytes. After an error nothing of them counts. Returns 0 or -errno.
 */
static int
spool_write(struct spool *s, const void *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		ssize_t done = pwrite(s->fd, (const char *)p + at, n - at,
		    (off_t)(s->bytes + at));

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += (size_t)done;
	}
	s->bytes += n;
	return 0;
}

/*
 * Returns the bytes that the kernel copied, 0 if it cannot copy between these
 * two files, or -errno.
 */
static ssize_t
move_some(const struct spool *s, int fd, uint64_t at)
{
	loff_t from = (loff_t)at;
	ssize_t n =
	    copy_file_range(s->fd, &from, fd, NULL, (size_t)(s->bytes - at), 0);

	if (n >= 0)
		return n;
	return errno == ENOSPC || errno == EDQUOT || errno == EIO ||
		       errno == EFBIG
		   ? -errno
		   : 0;
}

static ssize_t
write_some(const struct spool *s, int fd, uint64_t at, char *bytes)
{
	ssize_t got = pread(s->fd, bytes, COPY_BYTES, (off_t)at);
	ssize_t n = got > 0 ? write(fd, bytes, (size_t)got) : got;

	if (n > 0)
		return n;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return -EIO;
}

int
spool_copy(const struct spool *s, int fd)
{
	_cleanup_free_ char *bytes = NULL;
	bool moves = true;
	uint64_t at = 0;

	if (s->fd < 0)
		return -EMFILE;
	while (at < s->bytes) {
		ssize_t n = moves ? move_some(s, fd, at) : 0;

		moves = n != 0;
		if (!moves && bytes == NULL)
			bytes = xmalloc(COPY_BYTES);
		if (!moves)
			n = write_some(s, fd, at, bytes);
		if (n < 0)
			return (int)n;
		at += (uint64_t)n;
	}
	return 0;
}

ssize_t
spool_send(const struct spool *s, int sock, const void *p, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)p, n };

	return rights_send(sock, &iov, 1, s->fd);
}

/* --- a long fs/writeFile ------------------------------------------------ */

#define METHOD "fs/writeFile"
#define MEMBER "dataBase64"

/* Characters decoded at a time; divisible by 4. */
#define PIECE_CHARS (128u << 10)
#define PIECE_BYTES (PIECE_CHARS / 4 * 3)

/* The last characters are kept back, because padding may be among them. */
#define KEPT_MAX 16
#define KEPT_MIN 4

struct intake {
	struct buf before, after; /* the text before and after the content */
	struct spool *spool;	  /* decoded content, without padding */
	char kept[KEPT_MAX];	  /* characters not decoded yet */
	size_t nkept;
	bool ended; /* the closing quote has come */
};

struct intake *
intake_begin(const void *p, size_t n, size_t limit, unsigned *spools)
{
	size_t at = rpc_find_string(p, n, METHOD, MEMBER);
	struct spool *spool = at > 0 ? spool_new(spools) : NULL;
	struct intake *in;

	if (spool == NULL)
		return NULL;
	in = xcalloc(1, sizeof(*in));
	in->spool = spool;
	buf_init(&in->before, limit);
	buf_init(&in->after, limit);
	buf_put(&in->before, p, at);
	if (intake_add(in, (const char *)p + at, n - at) == n - at)
		return in;
	intake_free(in);
	return NULL;
}

void
intake_free(struct intake *in)
{
	if (in == NULL)
		return;
	buf_clear(&in->before);
	buf_clear(&in->after);
	spool_free(in->spool);
	free(in);
}

static void
keep(struct intake *in, const char *p, size_t n)
{
	memcpy(in->kept + in->nkept, p, n);
	in->nkept += n;
}

/*
 * Decodes characters of which none is padding. Returns false if they are no
 * such base64.
 */
static bool
decode(uint8_t *bytes, const char *p, size_t n)
{
	char error[BASE64_ERROR_MAX];

	return n == 0 ||
	       base64_decode(bytes, p, n, error) == (ssize_t)(n / 4 * 3);
}

/*
 * Takes up to PIECE_CHARS of the content. Returns false if nothing was taken.
 */
static bool
take_piece(struct intake *in, const char *p, size_t n)
{
	static heap_aligned uint8_t bytes[PIECE_BYTES + KEPT_MAX];
	size_t fill = (4 - in->nkept % 4) % 4, whole = 0, had;
	char head[KEPT_MAX + 3];

	if (n <= KEPT_MAX - in->nkept) {
		keep(in, p, n);
		return true;
	}
	memcpy(head, in->kept, in->nkept);
	memcpy(head + in->nkept, p, fill);
	had = in->nkept + fill;
	if (n - fill >= 2 * KEPT_MIN)
		whole = (n - fill - KEPT_MIN) / 4 * 4;
	if (!decode(bytes, head, had) ||
	    !decode(bytes + had / 4 * 3, p + fill, whole) ||
	    spool_write(in->spool, bytes, (had + whole) / 4 * 3) < 0)
		return false;
	in->nkept = 0;
	keep(in, p + fill + whole, n - fill - whole);
	return true;
}

size_t
intake_add(struct intake *in, const void *p, size_t n)
{
	const char *text = p;
	const char *quote = in->ended ? text : memchr(text, '"', n);
	size_t content = quote != NULL ? (size_t)(quote - text) : n, at = 0;

	assert(p != NULL);
	while (at < content) {
		size_t piece =
		    content - at < PIECE_CHARS ? content - at : PIECE_CHARS;

		if (!take_piece(in, text + at, piece))
			return at;
		at += piece;
	}
	in->ended = quote != NULL;
	buf_put(&in->after, text + at, n - at);
	return n;
}

/*
 * Tells whether the text, with empty content, is a valid fs/writeFile request.
 */
static bool
is_write(const struct buf *text)
{
	char error[ARGS_ERROR_MAX];
	union method_params p;
	struct rpc_message m;
	bool is;

	is = rpc_parse(&m, (const char *)text->data, text->len) == 0 &&
	     m.kind == RPC_KIND_REQUEST &&
	     slice_equal(m.method, SLICE(METHOD)) &&
	     params_decode(params_fs_write_file, &m, &p, error) == 0 &&
	     p.fs.data.len == 0;
	rpc_message_clear(&m);
	return is;
}

bool
intake_finish(struct intake *in)
{
	char error[BASE64_ERROR_MAX];
	uint8_t bytes[KEPT_MAX];
	ssize_t n = base64_decode(bytes, in->kept, in->nkept, error);
	size_t before = in->before.len;

	if (!in->ended || n < 0)
		return false;
	buf_put(&in->before, in->after.data, in->after.len);
	if (!in->after.failed && !in->before.failed && is_write(&in->before) &&
	    spool_write(in->spool, bytes, (size_t)n) == 0)
		return true;
	in->before.len = before;
	return false;
}

struct buf *
intake_text(struct intake *in)
{
	return &in->before;
}

struct spool *
intake_take_spool(struct intake *in)
{
	struct spool *s = in->spool;

	in->spool = NULL;
	return s;
}

/* Encodes the spooled content again, as the original characters. */
static int
restore_content(const struct spool *s, struct buf *out)
{
	_cleanup_free_ uint8_t *bytes = xmalloc(PIECE_BYTES);

	for (uint64_t at = 0; at < s->bytes;) {
		uint64_t left = s->bytes - at;
		size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
		ssize_t got = pread(s->fd, bytes, n, (off_t)at);
		uint8_t *text;

		if (got != (ssize_t)n)
			return got < 0 ? -errno : -EIO;
		text = buf_reserve(out, base64_encoded_len(n));
		if (text == NULL)
			return -EMSGSIZE;
		buf_commit(out, base64_encode((char *)text, bytes, n));
		at += n;
	}
	return 0;
}

int
intake_restore(struct intake *in, struct buf *out)
{
	int err;

	buf_put(out, in->before.data, in->before.len);
	err = restore_content(in->spool, out);
	buf_put(out, in->kept, in->nkept);
	buf_put(out, in->after.data, in->after.len);
	if (in->before.failed || in->after.failed || out->failed)
		return -EMSGSIZE;
	return err;
}
