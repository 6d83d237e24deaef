/* SPDX-License-Identifier: ISC */
/*
 * Copies the small files of a tree from the server as one stream, which tar(1)
 * there makes of the names that it is told. Only files come in it, and only
 * those that were asked for, in the order in which they were asked for: nothing
 * that the server says becomes a name here.
 *
 * What does not come, and what changed while it was read, is copied file by
 * file afterwards. Nothing but the time depends on the stream.
 */
#include "base.h"
#include "capabilities.h"
#include "tar.h"
#include "tar_process.h"

#define LOOKS_MAX   256	 /* requests under way */
#define NAMES_BYTES 8192 /* names are sent so many at a time */

struct wanted {
	TAILQ_ENTRY(wanted) link; /* unbundle.wanted */
	struct unbundle *unbundle;
	char *from, *to; /* owned */
	uint64_t size;
	struct facts facts;
	bool done, failed; /* failed: that was reported */
	uint64_t bytes;	   /* that came */
};

struct unbundle {
	struct copy *copy;
	char *from; /* the top there, without a slash at the end; owned */
	TAILQ_HEAD(, wanted) wanted;
	unsigned int all, count; /* count: those that are not done */
	bool started;		 /* tar is told names at once */
	struct wanted *last;	 /* that came or was passed over; or NULL */
	struct wanted *reading;	 /* that comes now; NULL: nothing wanted */
	bool begun;		 /* its file here was begun */
	struct copy_item *item;	 /* that file; NULL: it failed */
	struct buf content;	 /* of it, not written yet */
	struct tar_reader reader;
	struct tar_process tar;
};

/* --- What is wanted --------------------------------------------------------
 */

struct unbundle *
unbundle_new(struct copy *c, const char *from)
{
	struct unbundle *u;
	size_t len = strlen(from);

	if (!execd_client_can(c->ctl->client, CAN_DETAILS) ||
	    !execd_client_can(c->ctl->client, CAN_CLOSE_STDIN) ||
	    !execd_client_can(c->ctl->client, CAN_RETENTION_WAIT))
		return NULL;
	u = xcalloc(1, sizeof(*u));
	u->copy = c;
	while (len > 0 && from[len - 1] == '/')
		len--;
	u->from = xstrndup(from, len);
	TAILQ_INIT(&u->wanted);
	buf_init(&u->content, SIZE_MAX / 2);
	return u;
}

/* Its name below the top, with a slash. */
static const char *
name_below(const struct unbundle *u, const struct wanted *w)
{
	return w->from + strlen(u->from);
}

/* --- The stream ------------------------------------------------------------
 */

/* tar leaves out what it cannot read. */
static void
on_entry(void *arg, enum tar_type type, const char *name)
{
	struct unbundle *u = arg;
	struct wanted *w = u->last != NULL ? TAILQ_NEXT(u->last, link)
					   : TAILQ_FIRST(&u->wanted);

	while (w != NULL &&
	       (name[0] != '.' || strcmp(name + 1, name_below(u, w)) != 0))
		w = TAILQ_NEXT(w, link);
	if (w == NULL) {
		tar_process_break(&u->tar, "it sends what nobody asked for");
		return;
	}
	u->last = w;
	u->reading = type == TAR_FILE && !u->copy->stop ? w : NULL;
	u->begun = false;
}

/* whole: there was nothing before it, and nothing follows. */
static void
write_content(struct unbundle *u, bool whole)
{
	const struct wanted *w = u->reading;
	int err = 0;

	if (!u->begun)
		u->item =
		    copy_item_local(u->copy, w->from, w->to, &w->facts, whole);
	u->begun = true;
	if (u->item != NULL && u->content.len > 0)
		err = copy_item_write(u->item, u->content.data, u->content.len);
	buf_consume(&u->content, u->content.len);
	if (err < 0) {
		copy_item_written(u->item, err, strerror(-err));
		u->item = NULL;
	}
}

/* A small file is written when all of it has come. Its holes are found in it
 * then, and it is made under its own name. */
static void
on_content(void *arg, const void *data, size_t len)
{
	struct unbundle *u = arg;

	if (u->reading == NULL || (u->begun && u->item == NULL))
		return;
	buf_put(&u->content, data, len);
	if (u->content.len >= SMALL_BYTES)
		write_content(u, false);
}

/* A failure here was reported, and is not tried again. */
static void
on_end(void *arg)
{
	struct unbundle *u = arg;

	struct wanted *w = u->reading;
	uint64_t files = u->copy->files;

	if (w == NULL)
		return;
	write_content(u, !u->begun);
	if (u->item != NULL) {
		w->bytes = u->item->counted;
		copy_item_written(u->item, 0, "");
	}
	w->failed = u->copy->files == files;
	w->done = true;
	u->count--;
	u->item = NULL;
	u->reading = NULL;
}

static void
on_output(void *arg, const void *data, size_t len)
{
	struct unbundle *u = arg;

	if (!u->copy->stop && tar_read(&u->reader, data, len) < 0)
		tar_process_break(&u->tar, "this is no archive");
}

static void
ask_for(struct unbundle *u, const struct wanted *w)
{
	const char *name = name_below(u, w);

	if (!tar_process_goes_on(&u->tar))
		return;
	buf_puts(&u->tar.out, ".");
	buf_put(&u->tar.out, name, strlen(name) + 1);
	if (u->tar.out.len >= NAMES_BYTES)
		tar_process_flush(&u->tar);
}

/* Starts tar, and tells it what is wanted so far. */
static void
start(struct unbundle *u)
{
	static const char *const options[] = { "-c", "-b", "128", "-f", "-",
		"--format=gnu", "--dereference", "--hard-dereference",
		"--no-recursion", "--null", "-T", "-", NULL };
	struct wanted *w;

	u->reader = (struct tar_reader){ .entry = on_entry,
		.content = on_content,
		.end = on_end,
		.arg = u };
	u->started = true;
	tar_process_init(&u->tar, u->copy, on_output, u);
	tar_process_start(
	    &u->tar, u->from[0] != '\0' ? u->from : "/", "", options);
	TAILQ_FOREACH (w, &u->wanted, link)
		ask_for(u, w);
}

/* The names go while others are still looked for. */
bool
unbundle_take(struct unbundle *u, const struct remote_entry *e,
    const char *from, const char *to)
{
	struct wanted *w;

	if (!e->detailed || e->size > SMALL_BYTES)
		return false;
	w = xcalloc(1, sizeof(*w));
	w->unbundle = u;
	w->from = xstrdup(from);
	w->to = xstrdup(to);
	w->size = e->size;
	w->facts = e->facts;
	u->count++;
	u->all++;
	TAILQ_INSERT_TAIL(&u->wanted, w, link);
	if (u->started)
		ask_for(u, w);
	else if (u->all == WORTH_FILES)
		start(u);
	return true;
}

/* Forgets a file that is not complete. Its name here is not told: it comes
 * by itself. */
static void
drop_item(struct unbundle *u)
{
	if (u->item != NULL) {
		copy_item_count(u->item, 0);
		copy_item_free(u->item);
	}
	buf_consume(&u->content, u->content.len);
	u->item = NULL;
	u->reading = NULL;
}

/* --- What changed ----------------------------------------------------------
 */

static void
not_done(struct wanted *w)
{
	struct unbundle *u = w->unbundle;

	w->done = false;
	u->count++;
	u->copy->files--;
	u->copy->bytes -= w->bytes;
}

static void
looked_at(void *arg, const struct execd_answer *a)
{
	struct wanted *w = arg;
	struct facts now;

	w->unbundle->copy->active--;
	facts_of_remote(&now, a->code == 0 ? a->result : NULL);
	if (a->code == 0 && now.modified_ms == w->facts.modified_ms &&
	    (uint64_t)execd_json_number(json_get(a->result, "size"), -1) ==
		w->size)
		return;
	not_done(w);
}

/* tar fills up with zeros what became shorter while it was read, and says no
 * more than that something changed. */
static void
look_again(struct unbundle *u)
{
	struct copy *c = u->copy;
	struct wanted *w;

	TAILQ_FOREACH (w, &u->wanted, link) {
		copy_wait(c, LOOKS_MAX - 1);
		if (!w->done || w->failed || c->stop)
			continue;
		c->active++;
		ask_path(c->ctl, "fs/getMetadata", w->from, looked_at, w);
	}
	copy_wait(c, 0);
}

/* --- All of it -------------------------------------------------------------
 */

/* Waits for the stream. If it broke, what tar said of a file may be lost. */
static void
receive_all(struct unbundle *u)
{
	struct copy *c = u->copy;
	bool whole = tar_process_end(&u->tar);
	_cleanup_free_ char *why = xstrdup(tar_process_why(&u->tar));

	drop_item(u);
	tar_process_clear(&u->tar);
	if (!whole && !c->stop &&
	    execd_client_state(c->ctl->client) != EXECD_OVER)
		look_again(u);
	if (u->count == 0)
		execctl_tell(c->ctl, "%s: came as one stream", u->from);
	else if (u->count < u->all)
		execctl_tell(c->ctl,
		    "%s: %u files did not come in the stream: %s", u->from,
		    u->count, why);
	else
		execctl_tell(c->ctl,
		    "%s: not as one stream, but file by file: %s", u->from,
		    why);
}

void
unbundle_end(struct unbundle *u)
{
	struct copy *c = u->copy;
	struct wanted *w;

	if (u->started)
		receive_all(u);
	if (u->count > 0 && execd_client_state(c->ctl->client) == EXECD_OVER &&
	    !c->stop) {
		copy_failed(c, u->from, execd_client_error(c->ctl->client));
		c->code = EXIT_CTL_UNKNOWN;
		c->stop = true;
	}
	while ((w = TAILQ_FIRST(&u->wanted)) != NULL) {
		copy_wait(c, COPY_ACTIVE - 1);
		if (!w->done && !c->stop)
			copy_download(c, w->from, w->to, &w->facts);
		TAILQ_REMOVE(&u->wanted, w, link);
		free(w->from);
		free(w->to);
		free(w);
	}
	buf_clear(&u->content);
	free(u->from);
	free(u);
}
