/* SPDX-License-Identifier: ISC */
/*
 * The state of root's execd in a file in memory: a magic number, a version, and
 * then the fields of each module.
 */
#include "saved.h"

#include <endian.h>
#include <sys/mman.h>

#include "log_output.h"
#include "root.h"
#include "session_cgroup.h"

#define SAVED_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static char magic[16] = "execd's state";

/* The lines of the log that nobody has read yet. */
static void
log_save(struct saved *s)
{
	struct log_queue *q = log_output_queue();

	logs_save(s);
	SAVE(s, q->lost);
	SAVE(s, q->len);
	if (q->len > sizeof(q->text))
		s->failed = true;
	else
		saved_bytes(s, q->text, q->len);
}

static void (*const modules[])(struct saved *s) = {
	root_save,
	runners_save,
	kept_save,
	session_cgroup_save,
	log_save,
};

void
saved_bytes(struct saved *s, void *bytes, size_t n)
{
	if (s->mode == SAVED_WRITE && fwrite(bytes, 1, n, s->file) < n)
		s->failed = true;
	else if (s->mode == SAVED_READ && fread(bytes, 1, n, s->file) < n) {
		s->failed = true;
		memset(bytes, 0, n);
	}
}

void
saved_field(struct saved *s, void *field, size_t size)
{
	uint8_t found = (uint8_t)size;

	saved_bytes(s, &found, 1);
	saved_bytes(s, field, size);
	/* A field of one byte is a bool. */
	if (found != size || (size == 1 && *(uint8_t *)field > 1)) {
		s->failed = true;
		memset(field, 0, size);
	}
}

void
saved_text(struct saved *s, char *text, size_t size)
{
	uint32_t len = htole32((uint32_t)strnlen(text, size - 1));

	saved_bytes(s, &len, sizeof(len));
	len = le32toh(len);
	if (len >= size) {
		s->failed = true;
		return;
	}
	saved_bytes(s, text, len);
	if (s->mode == SAVED_READ)
		text[len] = '\0';
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

int
saved_write(void)
{
	struct saved s = { .mode = SAVED_WRITE, .version = SAVED_VERSION };
	_cleanup_close_ int fd =
	    memfd_create("execd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	s.file = copy < 0 ? NULL : fdopen(copy, "w");
	if (s.file == NULL)
		return -errno;
	saved_bytes(&s, magic, sizeof(magic));
	SAVE(&s, s.version);
	walk(&s);
	if (fclose(s.file) != 0 || s.failed ||
	    fcntl(fd, F_ADD_SEALS, SAVED_SEALS) < 0)
		return errno != 0 ? -errno : -EIO;
	return steal_fd(&fd);
}

static int
read_all(struct saved *s)
{
	char found[sizeof(magic)];

	saved_bytes(s, found, sizeof(found));
	SAVE(s, s->version);
	if (memcmp(found, magic, sizeof(magic)) != 0 || s->failed)
		return -EBADMSG;
	if (s->version < SAVED_OLDEST || s->version > SAVED_VERSION)
		return -EPROTO;
	walk(s);
	return s->failed || getc(s->file) != EOF ? -EBADMSG : 0;
}

int
saved_read(int fd, uint32_t *version)
{
	struct saved s = { .mode = SAVED_READ };
	int err;

	if (fcntl(fd, F_GET_SEALS) != SAVED_SEALS)
		return -EBADMSG;
	s.file = fdopen(fd, "r");
	if (s.file == NULL)
		return -errno;
	rewind(s.file);
	err = read_all(&s);
	*version = s.version;
	fclose(s.file);
	return err;
}

void
saved_descriptors(enum saved_mode mode)
{
	struct saved s = { .mode = mode, .version = SAVED_VERSION };

	walk(&s);
}
