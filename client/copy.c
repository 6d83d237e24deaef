/*
 * Files on their way, some at a time, and what the user sees of it.
 */
#include "copy.h"
#include "capabilities.h"
#include "path_uri.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOW_MS 200

/* One file: embedded is the transfer, whichever it is. */
struct copy_item {
	struct copy *copy;
	char *from, *to;  /* owned */
	int fd;		  /* the file of this machine */
	mode_t mode;	  /* of it, for an upload */
	char *temporary;  /* what is written, until it is complete */
	uint64_t counted; /* bytes of it in copy.bytes */
	struct upload upload;
	struct download download;
};

/* --- Progress ----------------------------------------------------------- */

static void
hide_progress(struct copy *c)
{
	if (c->showing)
		fputs("\r\033[K", stderr);
	c->showing = false;
}

static void
show_progress(struct copy *c)
{
	int64_t now = now_ms();

	if (c->ctl->quiet || c->ctl->json || !isatty(STDERR_FILENO) ||
	    now - c->shown_ms < SHOW_MS)
		return;
	c->shown_ms = now;
	c->showing = true;
	fprintf(stderr, "\r\033[K%" PRIu64 " files, %.1f MiB", c->files,
	    (double)c->bytes / (1 << 20));
	if (c->size > 0)
		fprintf(stderr, " of %.1f (%u%%)", (double)c->size / (1 << 20),
		    (unsigned int)(c->bytes * 100 / c->size));
	fflush(stderr);
}

static void
count(struct copy_item *i, uint64_t offset)
{
	struct copy *c = i->copy;

	c->bytes += offset - i->counted;
	i->counted = offset;
	show_progress(c);
}

void
copy_failed(struct copy *c, const char *what, const char *why)
{
	hide_progress(c);
	c->failed++;
	if (c->code == 0)
		c->code = EXIT_CTL_REFUSED;
	ctl_say("%s: %s", what, why);
}

void
copy_skipped(struct copy *c, const char *what, const char *why)
{
	hide_progress(c);
	c->skipped++;
	if (c->code == 0)
		c->code = EXIT_CTL_REFUSED;
	ctl_say("%s: skipped: %s", what, why);
}

void
copy_wait(struct copy *c, unsigned int active)
{
	while (c->active > active)
		loop_once(c->ctl);
	if (active == 0)
		hide_progress(c);
}

/* --- Items -------------------------------------------------------------- */

static struct copy_item *
item_new(struct copy *c, const char *from, const char *to)
{
	struct copy_item *i = xcalloc(1, sizeof(*i));

	i->copy = c;
	i->from = xstrdup(from);
	i->to = xstrdup(to);
	i->fd = -1;
	c->active++;
	return i;
}

static void
item_free(struct copy_item *i)
{
	if (i->fd >= 0)
		close(i->fd);
	if (i->temporary != NULL)
		unlink(i->temporary);
	upload_clear(&i->upload);
	download_clear(&i->download);
	i->copy->active--;
	free(i->temporary);
	free(i->from);
	free(i->to);
	free(i);
}

static void
item_failed(struct copy_item *i, const char *why)
{
	copy_failed(i->copy, i->from, why);
	item_free(i);
}

static void
transfer_done(struct copy_item *i, int code, const char *message)
{
	struct copy *c = i->copy;

	if (code == 0) {
		c->files++;
		item_free(i);
		return;
	}
	/* Neither a full disk nor a dead connection spares the others. */
	if (code == -ENOSPC || code == -EDQUOT ||
	    execd_client_state(c->ctl->client) == EXECD_OVER)
		c->stop = true;
	if (execd_client_state(c->ctl->client) == EXECD_OVER)
		c->code = EXIT_CTL_UNKNOWN;
	item_failed(i, message);
}

/* --- To the server ------------------------------------------------------ */

static int
read_local(void *arg, uint64_t offset, void *data, size_t len)
{
	struct copy_item *i = arg;
	size_t at = 0;

	while (at < len) {
		ssize_t n = pread(
		    i->fd, (char *)data + at, len - at, (off_t)(offset + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENODATA;
		at += (size_t)n;
	}
	return 0;
}

static void
uploaded_so_far(void *arg, uint64_t offset)
{
	count(arg, offset);
}

static void
mode_set(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code != 0)
		copy_failed(i->copy, i->to, a->message);
	transfer_done(i, 0, "");
}

/* A program stays one, where the server can do that. */
static void
set_mode(struct copy_item *i)
{
	struct json_writer w;
	struct buf b;

	params_path(&b, &w, "path", i->to);
	json_key(&w, "mode");
	json_u64(&w, i->mode);
	json_end(&w, '}');
	execd_client_request(i->copy->ctl->client, "fs/chmod",
	    (const char *)b.data, b.len, EXECD_REPEAT, mode_set, i);
	buf_clear(&b);
}

static void
upload_done(void *arg, int code, const char *message)
{
	struct copy_item *i = arg;
	_cleanup_free_ char *why = NULL;

	if (code != 0) {
		why = xasprintf(
		    "to :%s: %s; what is there is incomplete", i->to, message);
		transfer_done(i, code, why);
		return;
	}
	count(i, i->upload.size);
	if ((i->mode & 0111) != 0 &&
	    execd_client_can(i->copy->ctl->client, CAN_CHMOD))
		set_mode(i);
	else
		transfer_done(i, 0, "");
}

void
copy_upload(struct copy *c, const char *from, const char *to)
{
	struct copy_item *i = item_new(c, from, to);
	struct stat st;

	i->fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (i->fd < 0 || fstat(i->fd, &st) < 0) {
		item_failed(i, strerror(errno));
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		copy_skipped(c, from, "neither a file nor a directory");
		item_free(i);
		return;
	}
	i->mode = st.st_mode & 0777;
	i->upload = (struct upload){ .ctl = c->ctl,
		.path = xstrdup(to),
		.size = (uint64_t)st.st_size,
		.read = read_local,
		.progress = uploaded_so_far,
		.done = upload_done,
		.arg = i };
	upload_start(&i->upload);
}

/* --- From the server ---------------------------------------------------- */

static int
write_local(void *arg, const void *data, size_t len)
{
	struct copy_item *i = arg;
	size_t at = 0;

	while (at < len) {
		ssize_t n = write(i->fd, (const char *)data + at, len - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	count(i, i->counted + len);
	return 0;
}

/* Complete: only now does it get its name. */
static int
put_in_place(struct copy_item *i)
{
	int fd = i->fd;

	i->fd = -1;
	/* Where disks are far away, close(2) is what fails. */
	if (close(fd) < 0 || rename(i->temporary, i->to) < 0)
		return -errno;
	free(i->temporary);
	i->temporary = NULL;
	return 0;
}

static void
download_done(void *arg, int code, const char *message)
{
	struct copy_item *i = arg;
	_cleanup_free_ char *why = NULL;

	if (code == 0) {
		code = put_in_place(i);
		message = strerror(-code);
	}
	if (code != 0)
		why = xasprintf("to %s: %s", i->to, message);
	transfer_done(i, code, why);
}

/* Beside the target, so that rename(2) works; the mode is what open(2) would
 * give. */
static int
open_temporary(struct copy_item *i)
{
	const char *slash = strrchr(i->to, '/');
	int length = slash ? (int)(slash - i->to) + 1 : 0;
	char handle[32];

	transfer_handle(handle);
	i->temporary =
	    xasprintf("%.*s.%s-%d", length, i->to, handle, (int)getpid());
	i->fd = open(i->temporary,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (i->fd >= 0)
		return 0;
	free(i->temporary);
	i->temporary = NULL;
	return -errno;
}

void
copy_download(struct copy *c, const char *from, const char *to)
{
	struct copy_item *i = item_new(c, from, to);
	int err = open_temporary(i);
	_cleanup_free_ char *why = NULL;

	if (err < 0) {
		why = xasprintf("to %s: %s", to, strerror(-err));
		if (err == -ENOSPC || err == -EDQUOT)
			c->stop = true;
		item_failed(i, why);
		return;
	}
	i->download = (struct download){ .ctl = c->ctl,
		.path = xstrdup(from),
		.write = write_local,
		.done = download_done,
		.arg = i };
	download_start(&i->download);
}
