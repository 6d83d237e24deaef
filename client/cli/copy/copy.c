/* SPDX-License-Identifier: ISC */
#include "copy.h"

#include <sys/ioctl.h>

#include "capabilities.h"
#include "utf8.h"

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
put_time(struct buf *b, double s)
{
	unsigned long n = s < 1e9 ? (unsigned long)s : 1000000000;

	if (n >= 3600)
		buf_printf(b, "%lu:%02lu:%02lu", n / 3600, n / 60 % 60, n % 60);
	else
		buf_printf(b, "%lu:%02lu", n / 60, n % 60);
}

/* How much was copied and how fast, and when it ends or how long it took. */
static void
put_figures(struct buf *b, const struct copy *c, bool over)
{
	double s = (double)(now_ms() - c->began_ms) / 1000;
	double rate = s > 0 ? (double)c->bytes / s : 0;
	bool known = c->size > 0 && c->bytes <= c->size;

	buf_printf(b, "  ");
	if (c->size == 0 || c->files > 1)
		buf_printf(b, "%" PRIu64 " file%s, ", c->files,
		    c->files == 1 ? "" : "s");
	size_put(b, (double)c->bytes);
	if (!over && known) {
		buf_printf(b, " of ");
		size_put(b, (double)c->size);
		buf_printf(b, " (%u%%)",
		    (unsigned int)(c->bytes * 100.0 / (double)c->size));
	}
	buf_printf(b, "  ");
	size_put(b, rate);
	buf_printf(b, "/s  ");
	if (over)
		put_time(b, s);
	else if (known && rate > 0) {
		put_time(b, (double)(c->size - c->bytes) / rate);
		buf_printf(b, " left");
	}
}

/* Of a name that is too long for the line the end is shown. It is bytes of a
 * server, perhaps, and must not control the terminal. */
static void
put_name(struct buf *b, const char *name, size_t room)
{
	struct buf text;
	size_t from = 0;

	buf_init(&text, SIZE_MAX);
	utf8_escape(&text, name, strlen(name));
	if (text.len > room)
		from = text.len - room;
	while (from < text.len && (text.data[from] & 0xc0) == 0x80)
		from++;
	buf_put(b, text.data + from, text.len - from);
	buf_clear(&text);
}

static size_t
screen_columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0
		   ? size.ws_col
		   : 80;
}

static void
show(struct copy *c, const char *what, bool over)
{
	size_t columns = screen_columns();
	struct buf line, figures;

	buf_init(&line, SIZE_MAX);
	buf_init(&figures, SIZE_MAX);
	put_figures(&figures, c, over);
	buf_printf(&line, "\r\033[K");
	if (figures.len + 1 < columns)
		put_name(&line, what, columns - 1 - figures.len);
	/* A line that is longer than the screen could not be taken back. */
	buf_put(&line, figures.data,
	    figures.len < columns ? figures.len : columns - 1);
	if (over)
		buf_printf(&line, "\n");
	fwrite(line.data, 1, line.len, stderr);
	fflush(stderr);
	c->showing = !over;
	buf_clear(&figures);
	buf_clear(&line);
}

void
copy_show(struct copy *c, const char *what)
{
	int64_t now = now_ms();

	if (!c->shows || now - c->shown_ms < SHOW_MS)
		return;
	c->shown_ms = now;
	show(c, what, false);
}

void
copy_show_end(struct copy *c, const char *what)
{
	hide_progress(c);
	if (c->shows && c->files > 0)
		show(c, what, true);
}

void
copied(struct copy *c, const char *from, const char *to)
{
	c->files++;
	if (!c->ctl->verbose)
		return;
	hide_progress(c);
	if (from == NULL)
		execctl_tell(
		    c->ctl, "%s%s (a link)", c->to_server ? ":" : "", to);
	else
		execctl_tell(c->ctl, "%s%s -> %s%s", c->to_server ? "" : ":",
		    from, c->to_server ? ":" : "", to);
}

void
copy_item_count(struct copy_item *i, uint64_t offset)
{
	struct copy *c = i->copy;

	c->bytes += offset - i->counted;
	i->counted = offset;
	copy_show(c, i->from);
}

void
copy_failed(struct copy *c, const char *what, const char *why)
{
	hide_progress(c);
	c->failed++;
	if (c->code == 0)
		c->code = EXIT_CTL_REFUSED;
	execctl_fail(c->ctl, EXIT_CTL_REFUSED, "%s: %s", what, why);
}

void
copy_skipped(struct copy *c, const char *what, const char *why)
{
	hide_progress(c);
	c->skipped++;
	if (c->code == 0)
		c->code = EXIT_CTL_REFUSED;
	execctl_fail(c->ctl, EXIT_CTL_REFUSED, "%s: skipped: %s", what, why);
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
	i->in_tree = c->in_tree;
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
		copied(c, i->from, i->to);
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
	int signal = signals_take(&signals);

	if (signal != 0)
		c->signal = signal;
	c->stop = true;
}

int
copy_begin(struct copy *c)
{
	sigset_t set = signals_that_end();

	TAILQ_INIT(&c->items);
	TAILQ_INIT(&c->late);
	c->began_ms = now_ms();
	c->umask = umask(0);
	umask(c->umask);
	c->shows = !c->ctl->quiet && !c->ctl->json && isatty(STDERR_FILENO);
	signals.ready = signal_ready;
	signals.arg = c;
	return signals_watch(c->ctl, &signals, &set);
}

/* What the server has not removed yet, and what it could not remove. */
struct leftover {
	STAILQ_ENTRY(leftover) link; /* leftovers */
	struct copy *copy;
	const char *path;
	bool removed;
};

static STAILQ_HEAD(, leftover) leftovers = STAILQ_HEAD_INITIALIZER(leftovers);

static void
taken_away(void *arg, const struct execd_answer *a)
{
	struct leftover *l = arg;

	l->copy->removing--;
	l->removed = a->code == 0;
}

static void
take_away(struct copy *c, const char *path)
{
	struct leftover *l = xcalloc(1, sizeof(*l));

	l->copy = c;
	l->path = xstrdup(path);
	STAILQ_INSERT_TAIL(&leftovers, l, link);
	c->removing++;
}

void
copy_remove(struct copy *c, const char *path, execd_answer_fn *fn, void *arg)
{
	struct json_text t;

	params_begin(&t, "path", path);
	json_key_bool(&t.w, "force", true);
	ask(c->ctl, "fs/remove", &t, fn, arg);
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
	take_away(c, i->temporary);
}

static void
end_waiting(void *arg)
{
	*(bool *)arg = true;
}

bool
copy_give_up(struct copy *c)
{
	bool late = false, clean = true;
	struct timer timer = { .fire = end_waiting, .arg = &late };
	struct copy_item *i;
	struct leftover *l;

	hide_progress(c);
	TAILQ_FOREACH (i, &c->items, link)
		give_up_item(i);
	if (c->staging != NULL)
		take_away(c, c->staging);
	STAILQ_FOREACH (l, &leftovers, link)
		copy_remove(c, l->path, taken_away, l);
	timer_set(c->ctl, &timer, GIVE_UP_MS);
	while (c->removing > 0 && !late &&
	       execd_client_state(c->ctl->client) != EXECD_OVER)
		loop_once(c->ctl);
	timer_remove(c->ctl, &timer);
	source_remove(c->ctl, &signals);
	STAILQ_FOREACH (l, &leftovers, link) {
		if (l->removed)
			continue;
		execctl_say(":%s may be left there, incomplete", l->path);
		clean = false;
	}
	return clean;
}

/*
 * execctl cp: keeps what belongs to a file besides its content: mode,
 * modification time and links. It counts and reports what cannot be kept.
 */

/* Work for the end of the copy. A link made earlier could redirect later
 * writes, and a directory's time changes with every file in it. */
struct late {
	TAILQ_ENTRY(late) link; /* copy.late */
	char *path;		/* owned */
	char *target;		/* of a link; owned; NULL: a directory */
	struct facts facts;
};

void
copy_unkept(struct copy *c, const char *what, const char *why)
{
	c->unkept++;
	if (c->preserve && c->code == 0)
		c->code = EXIT_CTL_REFUSED;
	if (c->preserve || !c->ctl->quiet)
		execctl_say("%s: not kept: %s", what, why);
}

/* --- What is known of a file -------------------------------------------- */

void
facts_of_remote(struct facts *f, const struct json_value *metadata)
{
	int64_t mode = execd_json_number(json_get(metadata, "mode"), -1);
	int64_t ms = execd_json_number(json_get(metadata, "modifiedAtMs"), -1);

	*f = (struct facts){
		.has_mode = mode >= 0 && mode <= 07777,
		.mode = mode >= 0 ? (mode_t)mode & 07777 : 0,
		.has_time = ms >= 0,
		.attributes =
		    execd_json_bool(json_get(metadata, "hasAttributes"), false),
		.modified_ms = ms,
	};
}

void
facts_of_local(struct facts *f, const struct stat *st)
{
	*f = (struct facts){
		.has_mode = true,
		.mode = st->st_mode & 07777,
		.has_time = st->st_mtim.tv_sec >= 0,
		.modified_ms = (int64_t)st->st_mtim.tv_sec * 1000 +
			       st->st_mtim.tv_nsec / 1000000,
	};
}

/* The set-id bits decide which user a program runs as, and the sticky bit who
 * may delete files. So they are never copied. */
mode_t
facts_mode(struct copy *c, const struct facts *f, const char *path)
{
	if (c->preserve && (f->mode & 07000) != 0)
		copy_unkept(c, path, "the set-id and sticky bits of its mode");
	return f->mode & 0777;
}

void
facts_attributes(struct copy *c, const struct facts *f, const char *path)
{
	if (c->preserve && f->attributes)
		copy_unkept(
		    c, path, "its access control list or extended attributes");
}

/* --- On this machine ---------------------------------------------------- */

bool
is_special(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISREG(st.st_mode) &&
	       !S_ISDIR(st.st_mode);
}

int
keep_local_time(int fd, const char *path, const struct facts *f)
{
	const struct timespec times[] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (time_t)(f->modified_ms / 1000),
		    .tv_nsec = (long)(f->modified_ms % 1000) * 1000000 },
	};

	if (fd >= 0)
		return futimens(fd, times) < 0 ? -errno : 0;
	return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW) < 0
		   ? -errno
		   : 0;
}

static void
finish_local_directory(struct copy *c, const struct late *l)
{
	mode_t hidden = c->preserve ? 0 : c->umask;

	if (l->facts.has_mode &&
	    chmod(l->path, facts_mode(c, &l->facts, l->path) & ~hidden) < 0)
		copy_unkept(c, l->path, strerror(errno));
	if (!c->preserve)
		return;
	facts_attributes(c, &l->facts, l->path);
	if (!l->facts.has_mode)
		copy_unkept(c, l->path, "the server does not report modes");
	if (!l->facts.has_time || keep_local_time(-1, l->path, &l->facts) < 0)
		copy_unkept(c, l->path, "its time of modification");
}

/* The new link replaces a link or file of that name, but not a directory. */
static int
replace_local_link(const struct late *l)
{
	_cleanup_free_ char *beside = temporary_beside(l->path);
	int err;

	if (symlink(l->target, beside) < 0)
		return -errno;
	if (rename(beside, l->path) == 0)
		return 0;
	err = -errno;
	unlink(beside);
	return err;
}

static void
finish_local_link(struct copy *c, const struct late *l)
{
	int err = symlink(l->target, l->path) < 0 ? -errno : 0;

	if (err == -EEXIST && is_special(l->path)) {
		copy_failed(c, l->path, COPY_SPECIAL);
		return;
	}
	if (err == -EEXIST)
		err = replace_local_link(l);
	if (err < 0)
		copy_failed(c, l->path, strerror(-err));
	else
		copied(c, NULL, l->path);
}

/* --- On the server ------------------------------------------------------ */

struct kept {
	struct copy *copy;
	char *path; /* owned */
};

static void
kept_answered(void *arg, const struct execd_answer *a)
{
	struct kept *k = arg;

	k->copy->active--;
	if (a->code != 0)
		copy_unkept(k->copy, k->path, a->message);
	free(k->path);
	free(k);
}

static void
ask_to_keep(struct copy *c, const char *method, const char *path,
    const char *key, uint64_t value)
{
	struct kept *k = xmalloc(sizeof(*k));
	struct json_text t;

	*k = (struct kept){ c, xstrdup(path) };
	params_begin(&t, "path", path);
	json_key_u64(&t.w, key, value);
	c->active++;
	ask(c->ctl, method, &t, kept_answered, k);
}

void
keep_remote_mode(struct copy *c, const char *path, mode_t mode)
{
	if (execd_client_can(c->ctl->client, CAN_CHMOD))
		ask_to_keep(c, "fs/chmod", path, "mode", mode);
	else
		copy_unkept(c, path, "the server sets no modes");
}

static void
finish_remote_directory(struct copy *c, const struct late *l)
{
	facts_attributes(c, &l->facts, l->path);
	keep_remote_mode(c, l->path, facts_mode(c, &l->facts, l->path));
	if (!c->preserve)
		return;
	if (!l->facts.has_time)
		copy_unkept(c, l->path, "a time before 1970");
	else if (!execd_client_can(c->ctl->client, CAN_SET_TIMES))
		copy_unkept(c, l->path, "the server sets no times");
	else
		ask_to_keep(c, "fs/setTimes", l->path, "modifiedAtMs",
		    (uint64_t)l->facts.modified_ms);
}

/* --- what is set when everything is copied ------------------------------- */

void
copy_later(
    struct copy *c, const char *path, const char *target, const struct facts *f)
{
	struct late *l = xmalloc(sizeof(*l));

	*l = (struct late){ .path = xstrdup(path),
		.target = target ? xstrdup(target) : NULL,
		.facts = f ? *f : (struct facts){ 0 } };
	TAILQ_INSERT_HEAD(&c->late, l, link);
}

static void
finish(struct copy *c, const struct late *l)
{
	if (c->to_server)
		finish_remote_directory(c, l);
	else if (l->target == NULL)
		finish_local_directory(c, l);
	else
		finish_local_link(c, l);
}

/* Makes links first. Then directories follow, inner ones before outer ones. */
void
copy_finish(struct copy *c)
{
	struct late *l, *next;

	TAILQ_FOREACH_SAFE (l, &c->late, link, next)
		if (l->target != NULL && c->signal == 0)
			finish(c, l);
	TAILQ_FOREACH_SAFE (l, &c->late, link, next) {
		copy_wait(c, COPY_ACTIVE - 1);
		if (l->target == NULL && c->signal == 0)
			finish(c, l);
		TAILQ_REMOVE(&c->late, l, link);
		free(l->path);
		free(l->target);
		free(l);
	}
	copy_wait(c, 0);
}
