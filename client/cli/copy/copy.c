/* SPDX-License-Identifier: ISC */
/*
 * The copy of many files: how many at a time, the progress that is shown, and
 * what becomes of those under way when a signal ends it.
 */
#include "copy_item.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHOW_MS 200

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

void
copy_item_count(struct copy_item *i, uint64_t offset)
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
	execctl_say("%s: %s", what, why);
}

void
copy_skipped(struct copy *c, const char *what, const char *why)
{
	hide_progress(c);
	c->skipped++;
	if (c->code == 0)
		c->code = EXIT_CTL_REFUSED;
	execctl_say("%s: skipped: %s", what, why);
}

void
copy_wait(struct copy *c, unsigned int active)
{
	while (c->active > active && c->signal == 0)
		loop_once(c->ctl);
	if (active == 0)
		hide_progress(c);
}

/* --- Items -------------------------------------------------------------- */

struct copy_item *
copy_item_new(struct copy *c, const char *from, const char *to)
{
	struct copy_item *i = xcalloc(1, sizeof(*i));

	i->copy = c;
	i->from = xstrdup(from);
	i->to = xstrdup(to);
	i->fd = -1;
	c->active++;
	TAILQ_INSERT_TAIL(&c->items, i, link);
	return i;
}

void
copy_item_free(struct copy_item *i)
{
	TAILQ_REMOVE(&i->copy->items, i, link);
	if (i->fd >= 0)
		close(i->fd);
	if (i->temporary != NULL && !i->copy->to_server)
		unlink(i->temporary);
	upload_clear(&i->upload);
	download_clear(&i->download);
	i->copy->active--;
	free(i->temporary);
	free(i->final);
	free(i->from);
	free(i->to);
	free(i);
}

void
copy_item_failed(struct copy_item *i, const char *why)
{
	copy_failed(i->copy, i->from, why);
	copy_item_free(i);
}

void
copy_item_done(struct copy_item *i, int code, const char *message)
{
	struct copy *c = i->copy;

	if (code == 0) {
		c->files++;
		copy_item_free(i);
		return;
	}
	/* A full disk or a dead connection also stops the other files. */
	if (code == -ENOSPC || code == -EDQUOT ||
	    execd_client_state(c->ctl->client) == EXECD_OVER)
		c->stop = true;
	if (execd_client_state(c->ctl->client) == EXECD_OVER)
		c->code = EXIT_CTL_UNKNOWN;
	copy_item_failed(i, message);
}

/* --- The end before the end ---------------------------------------------- */

#define GIVE_UP_MS 2000

static struct source signals;

static void
signal_ready(void *arg)
{
	struct copy *c = arg;
	struct signalfd_siginfo info;

	if (read(signals.fd, &info, sizeof(info)) == sizeof(info))
		c->signal = (int)info.ssi_signo;
	c->stop = true;
}

int
copy_begin(struct copy *c)
{
	sigset_t set;
	int fd;

	TAILQ_INIT(&c->items);
	TAILQ_INIT(&c->late);
	c->umask = umask(0);
	umask(c->umask);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return execctl_fail(
		    c->ctl, EXIT_CTL_REFUSED, "signalfd: %s", strerror(errno));
	signals.ready = signal_ready;
	signals.arg = c;
	source_set(c->ctl, &signals, fd, POLLIN);
	return 0;
}

static void
taken_away(void *arg, const struct execd_answer *a)
{
	struct copy *c = arg;

	c->removing--;
}

void
copy_remove(struct copy *c, const char *path, execd_answer_fn *fn, void *arg)
{
	struct json_writer w;
	struct buf b;

	params_path(&b, &w, "path", path);
	json_key_bool(&w, "force", true);
	json_end(&w, '}');
	execd_client_request(c->ctl->client, "fs/remove", (const char *)b.data,
	    b.len, EXECD_REPEAT, fn, arg);
	buf_clear(&b);
}

static void
give_up_item(struct copy_item *i)
{
	struct copy *c = i->copy;

	if (i->temporary == NULL)
		return;
	if (!c->to_server) {
		unlink(i->temporary);
		return;
	}
	c->removing++;
	copy_remove(c, i->temporary, taken_away, c);
}

static void
end_waiting(void *arg)
{
	*(bool *)arg = true;
}

void
copy_give_up(struct copy *c)
{
	bool late = false;
	struct timer timer = { .fire = end_waiting, .arg = &late };
	struct copy_item *i;

	hide_progress(c);
	TAILQ_FOREACH (i, &c->items, link)
		give_up_item(i);
	timer_set(c->ctl, &timer, GIVE_UP_MS);
	while (c->removing > 0 && !late &&
	       execd_client_state(c->ctl->client) != EXECD_OVER)
		loop_once(c->ctl);
	timer_remove(c->ctl, &timer);
	source_remove(c->ctl, &signals);
}
