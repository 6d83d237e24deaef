/* SPDX-License-Identifier: ISC */
/*
 * execctl cp: keeps what belongs to a file besides its content: mode,
 * modification time and links. It counts and reports what cannot be kept.
 */
#include "capabilities.h"
#include "copy.h"
#include "path_uri.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* The set-id and sticky bits are never copied: they decide who a program runs
 * as and who may delete files. */
mode_t
facts_mode(struct copy *c, const struct facts *f, const char *path)
{
	if (c->preserve && (f->mode & 07000) != 0)
		copy_unkept(c, path, "the set-id and sticky bits of its mode");
	return f->mode & 0777;
}

/* --- On this machine ---------------------------------------------------- */

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
	if (!l->facts.has_mode)
		copy_unkept(c, l->path, "the server does not report modes");
	if (!l->facts.has_time || keep_local_time(-1, l->path, &l->facts) < 0)
		copy_unkept(c, l->path, "its time of modification");
}

/* The new link replaces a link or file of that name, but not a directory. */
static void
finish_local_link(struct copy *c, const struct late *l)
{
	_cleanup_free_ char *beside =
	    xasprintf("%s.execctl-%d", l->path, (int)getpid());

	if (symlink(l->target, l->path) == 0) {
		c->files++;
		return;
	}
	if (errno == EEXIST && symlink(l->target, beside) == 0) {
		if (rename(beside, l->path) == 0) {
			c->files++;
			return;
		}
		copy_failed(c, l->path, strerror(errno));
		unlink(beside);
		return;
	}
	copy_failed(c, l->path, strerror(errno));
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
	struct json_writer w;
	struct buf b;

	*k = (struct kept){ c, xstrdup(path) };
	params_path(&b, &w, "path", path);
	json_key_u64(&w, key, value);
	json_end(&w, '}');
	c->active++;
	execd_client_request(c->ctl->client, method, (const char *)b.data,
	    b.len, EXECD_REPEAT, kept_answered, k);
	buf_clear(&b);
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
	keep_remote_mode(c, l->path, facts_mode(c, &l->facts, l->path));
	if (!l->facts.has_time)
		copy_unkept(c, l->path, "a time before 1970");
	else if (!execd_client_can(c->ctl->client, CAN_SET_TIMES))
		copy_unkept(c, l->path, "the server sets no times");
	else
		ask_to_keep(c, "fs/setTimes", l->path, "modifiedAtMs",
		    (uint64_t)l->facts.modified_ms);
}

/* --- Later -------------------------------------------------------------- */

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
