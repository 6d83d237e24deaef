/* SPDX-License-Identifier: ISC */
/*
 * The state of root's execd in a file in memory: a magic number, a version, and
 * then the fields of each module.
 */
#include "saved.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "log_output.h"
#include "root.h"
#include "session_cgroup.h"
#include "util.h"

#define SAVED_MAX   (256u << 20) /* about a million runners */
#define SAVED_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static char magic[16] = "execd's state";

/* The lines of the log that nobody has read yet. */
static void
log_save(struct saved *s)
{
	int *in, *out;
	struct log_queue *q = log_output_parts(&in, &out);

	saved_fd(s, in);
	saved_fd(s, out);
	SAVE(s, q->lost);
	SAVE(s, q->len);
	if (q->len > sizeof(q->text))
		s->in.failed = true;
	else
		saved_bytes(s, q->text, q->len);
}

static void (*const modules[])(struct saved *s) = {
	root_save,
	runners_save,
	store_save,
	cleanup_save,
	session_cgroup_save,
	log_save,
};

bool
saved_failed(const struct saved *s)
{
	return s->out.failed || s->in.failed;
}

void
saved_bytes(struct saved *s, void *bytes, size_t n)
{
	if (s->mode == SAVED_WRITE)
		buf_put(&s->out, bytes, n);
	else if (s->mode == SAVED_READ)
		buf_get(&s->in, bytes, n);
}

static bool
get_bool(struct saved *s)
{
	uint8_t v = buf_get_u8(&s->in);

	if (v > 1)
		s->in.failed = true;
	return v == 1;
}

void
saved_field(struct saved *s, void *field, size_t size)
{
	uint8_t expected = (uint8_t)size, found = expected;

	saved_bytes(s, &found, 1);
	if (found != expected)
		s->in.failed = true;
	/* A field of one byte is a bool. */
	if (size == sizeof(bool) && s->mode == SAVED_READ)
		*(bool *)field = get_bool(s);
	else
		saved_bytes(s, field, size);
}

void
saved_text(struct saved *s, char *text, size_t size)
{
	if (s->mode == SAVED_WRITE)
		buf_put_string(&s->out, text, strnlen(text, size - 1));
	else if (s->mode == SAVED_READ)
		buf_get_string(&s->in, text, size);
}

void
saved_fd(struct saved *s, int *fd)
{
	SAVE(s, *fd);
	if (*fd >= 0 && (s->mode == SAVED_KEEP || s->mode == SAVED_GUARD))
		fcntl(*fd, F_SETFD, s->mode == SAVED_KEEP ? 0 : FD_CLOEXEC);
}

static void
walk(struct saved *s)
{
	for (size_t i = 0; i < nitems(modules); i++)
		modules[i](s);
}

static int
put_in_memory(const struct buf *b)
{
	_cleanup_close_ int fd =
	    memfd_create("execd", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, b->data, b->len) != (ssize_t)b->len ||
	    fcntl(fd, F_ADD_SEALS, SAVED_SEALS) < 0)
		return errno != 0 ? -errno : -EIO;
	return steal_fd(&fd);
}

int
saved_write(void)
{
	struct saved s = { .mode = SAVED_WRITE, .version = SAVED_VERSION };
	int fd;

	buf_init(&s.out, SAVED_MAX);
	buf_put(&s.out, magic, sizeof(magic));
	SAVE(&s, s.version);
	walk(&s);
	errno = 0;
	fd = s.out.failed ? -E2BIG : put_in_memory(&s.out);
	buf_clear(&s.out);
	return fd;
}

static int
read_all(struct saved *s)
{
	char found[sizeof(magic)] = "";

	buf_get(&s->in, found, sizeof(found));
	SAVE(s, s->version);
	if (memcmp(found, magic, sizeof(magic)) != 0 || saved_failed(s))
		return -EBADMSG;
	if (s->version < SAVED_OLDEST || s->version > SAVED_VERSION)
		return -EPROTO;
	walk(s);
	return buf_end(&s->in);
}

int
saved_read(int fd, uint32_t *version)
{
	struct saved s = { .mode = SAVED_READ };
	struct stat st;
	void *data;
	int err;

	if (fcntl(fd, F_GET_SEALS) != SAVED_SEALS || fstat(fd, &st) < 0 ||
	    st.st_size <= 0 || st.st_size > SAVED_MAX)
		return -EBADMSG;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	buf_reader_init(&s.in, data, (size_t)st.st_size);
	err = read_all(&s);
	*version = s.version;
	munmap(data, (size_t)st.st_size);
	return err;
}

void
saved_descriptors(enum saved_mode mode)
{
	struct saved s = { .mode = mode, .version = SAVED_VERSION };

	walk(&s);
}
