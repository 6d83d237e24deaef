/* SPDX-License-Identifier: ISC */
/*
 * Copies one file from the server into what cannot be replaced by a new file: a
 * FIFO, a device, or a file that has no name any more. A FIFO may have
 * a slow reader. The client must still serve its connection meanwhile, so no
 * write here blocks.
 */
#include "base.h"
#include "copy.h"

#define QUEUED_MAX (4u << 20) /* bytes that wait for the reader */

static void
end_into(struct copy_item *i, int code, const char *message)
{
	_cleanup_free_ char *why = xasprintf("to %s: %s", i->to, message);

	output_clear(&i->out);
	copy_item_done(i, code, code != 0 ? why : message);
}

/* The last bytes may still wait when the download is complete. */
static void
into_changed(void *arg)
{
	struct copy_item *i = arg;
	int err = i->out.failed;

	if (!i->download.t.ended || i->download.t.waiting > 0) {
		if (err < 0)
			download_fail(&i->download, err, strerror(-err));
		download_update(&i->download);
	} else if (err < 0 || output_queued(&i->out) == 0) {
		end_into(i, err, err < 0 ? strerror(-err) : "");
	}
}

/* A failure is the result here, so nobody else is told of it. */
static int
write_into(void *arg, const void *data, size_t len)
{
	struct copy_item *i = arg;

	i->out.changed = NULL;
	output_put(&i->out, data, len);
	i->out.changed = into_changed;
	copy_item_count(i, i->counted + len);
	return i->out.failed;
}

static bool
into_ready(void *arg)
{
	const struct copy_item *i = arg;

	return output_queued(&i->out) < QUEUED_MAX;
}

static void
into_done(void *arg, int code, const char *message)
{
	struct copy_item *i = arg;

	if (code != 0 || output_queued(&i->out) == 0)
		end_into(i, code, message);
}

void
copy_download_into(struct copy *c, const char *from, const char *to)
{
	struct copy_item *i = copy_item_new(c, from, to);
	_cleanup_free_ char *why = NULL;

	i->fd =
	    open(to, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (i->fd < 0) {
		why = xasprintf("to %s: %s", to,
		    errno == ENXIO ? "no program reads from it"
				   : strerror(errno));
		copy_item_failed(i, why);
		return;
	}
	output_init(&i->out, c->ctl, i->fd, into_changed, i);
	i->download = (struct download){
		.t = { .ctl = c->ctl,
		    .path = xstrdup(from),
		    .done = into_done,
		    .arg = i },
		.write = write_into,
		.ready = into_ready,
	};
	download_start(&i->download);
}
