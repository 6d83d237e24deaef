/* SPDX-License-Identifier: ISC */
/*
 * Copies one file to the server or from it. Knows where the file has holes, and
 * gives it its name, mode and time when it is complete.
 */
#include "base.h"
#include "copy.h"

#include <sys/random.h>

#include "capabilities.h"
#include "file_replace.h"
#include "jsonrpc.h"
#include "path_uri.h"

/*
 * A file copied to the server: it gets its name, its mode and its time there
 * when it is complete.
 */

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

/* Skips holes: the server's file has zeros where nothing is written. */
static uint64_t
next_local_data(void *arg, uint64_t offset)
{
	struct copy_item *i = arg;
	off_t at = lseek(i->fd, (off_t)offset, SEEK_DATA);

	if (at < 0)
		return errno == ENXIO ? i->upload.size : offset;
	return (uint64_t)at;
}

static void
uploaded_so_far(void *arg, uint64_t offset)
{
	copy_item_count(arg, offset);
}

static void
ask_next(struct copy_item *i, const char *method, struct json_text *params,
    execd_answer_fn *fn)
{
	ask(i->copy->ctl, method, params, fn, i);
}

/* --- An upload gets its name when it is complete ------------------------ */

/* left: the incomplete file that may stay on the server; NULL: none. */
static void
upload_failed(
    struct copy_item *i, int code, const char *message, const char *left)
{
	_cleanup_free_ char *why =
	    xasprintf("to :%s: %s%s%s%s", i->to, message, left ? "; :" : "",
		left ? left : "", left ? " may be left there, incomplete" : "");

	copy_item_done(i, code, why);
}

struct failure {
	struct copy_item *item;
	int code;
	char *message; /* owned */
};

static void
removed(void *arg, const struct execd_answer *a)
{
	struct failure *f = arg;

	upload_failed(f->item, f->code, f->message,
	    a->code != 0 ? f->item->temporary : NULL);
	free(f->message);
	free(f);
}

/* Removes what was uploaded. The file that was there before is unchanged. */
static void
remove_temporary(struct copy_item *i, int code, const char *message)
{
	struct failure *f = xcalloc(1, sizeof(*f));

	*f = (struct failure){ i, code, xstrdup(message) };
	copy_remove(i->copy, i->temporary, removed, f);
}

/* The move was repeated after a lost connection, and the first request may have
 * done it. Then the final name has the right size. */
static void
moved_before(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;
	int64_t size = execd_json_number(json_get(a->result, "size"), -1);

	if (a->code == 0 && size >= 0 && (uint64_t)size == i->upload.size)
		copy_item_done(i, 0, "");
	else
		upload_failed(i, EXECD_CODE_LOST,
		    "it was gone before it could be renamed", NULL);
}

static void
moved_keeping(struct copy_item *i, const struct json_value *result)
{
	char what[128];

	if (json_get(result, "notKept") != NULL)
		copy_unkept(i->copy, i->to,
		    value_string(
			json_get(result, "notKept"), what, sizeof(what)));
	copy_item_done(i, 0, "");
}

static void
moved(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code == RPC_NOT_FOUND)
		ask_path(
		    i->copy->ctl, "fs/getMetadata", i->final, moved_before, i);
	else if (a->code != 0)
		remove_temporary(i, a->code, a->message);
	else
		moved_keeping(i, a->result);
}

/* An executable file stays executable even without -p. */
static bool
sets_mode(const struct copy_item *i)
{
	return i->copy->preserve || (i->facts.mode & 0111) != 0;
}

static void
put_on_server(struct copy_item *i)
{
	struct json_text t;

	if (i->temporary == NULL) {
		copy_item_done(i, 0, "");
		return;
	}
	params_begin(&t, "sourcePath", i->temporary);
	json_key_path(&t.w, "destinationPath", i->final);
	json_key_bool(&t.w, "overwrite", true);
	if (i->keeps)
		json_key_bool(&t.w, "keepAttributes", true);
	if (i->keeps && sets_mode(i))
		json_key_u64(
		    &t.w, "mode", facts_mode(i->copy, &i->facts, i->from));
	ask_next(i, "fs/move", &t, moved);
}

static void
time_set(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code != 0)
		copy_unkept(i->copy, i->to, a->message);
	put_on_server(i);
}

static void
set_time(struct copy_item *i)
{
	struct copy *c = i->copy;
	struct json_text t;

	if (!c->preserve) {
		put_on_server(i);
		return;
	}
	if (!i->facts.has_time ||
	    !execd_client_can(c->ctl->client, CAN_SET_TIMES)) {
		copy_unkept(c, i->from,
		    i->facts.has_time ? "the server sets no times"
				      : "a time before 1970");
		put_on_server(i);
		return;
	}
	params_begin(&t, "path", i->upload.t.path);
	json_key_u64(&t.w, "modifiedAtMs", (uint64_t)i->facts.modified_ms);
	ask_next(i, "fs/setTimes", &t, time_set);
}

static void
mode_set(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code != 0)
		copy_unkept(i->copy, i->to, a->message);
	set_time(i);
}

static void
ask_mode(
    struct copy_item *i, const char *path, mode_t mode, execd_answer_fn *fn)
{
	struct json_text t;

	params_begin(&t, "path", path);
	json_key_u64(&t.w, "mode", mode);
	ask_next(i, "fs/chmod", &t, fn);
}

static void
set_mode(struct copy_item *i)
{
	struct copy *c = i->copy;

	facts_attributes(c, &i->facts, i->from);
	if (i->keeps || (!sets_mode(i) && !i->hidden)) {
		set_time(i);
	} else if (!execd_client_can(c->ctl->client, CAN_CHMOD)) {
		copy_unkept(c, i->from, "the server sets no modes");
		set_time(i);
	} else {
		ask_mode(i, i->upload.t.path, facts_mode(c, &i->facts, i->from),
		    mode_set);
	}
}

static void
upload_done(void *arg, int code, const char *message)
{
	struct copy_item *i = arg;

	/* It was refused before anything was made. */
	if (code == RPC_INVALID_PARAMS && i->upload.acknowledged == 0) {
		upload_failed(i, code, message, NULL);
		return;
	}
	if (code != 0 && i->temporary != NULL) {
		remove_temporary(i, code, message);
		return;
	}
	if (code != 0) {
		upload_failed(i, code, message, i->to);
		return;
	}
	copy_item_count(i, i->upload.size);
	set_mode(i);
}

static void
start_upload(struct copy_item *i)
{
	const char *path = i->temporary != NULL ? i->temporary : i->to;

	/* The copy was given up: a new upload would create the file again. */
	if (i->copy->signal != 0)
		return;
	i->upload.t.path = xstrdup(path);
	upload_start(&i->upload);
}

/* Writes to the final name directly. An interruption would leave an incomplete
 * file, so the user is told first. */
static void
upload_in_place(struct copy_item *i, const char *why)
{
	struct copy *c = i->copy;

	if (!c->told_in_place && !c->ctl->quiet)
		execctl_say("%s: written in place, an interruption leaves it "
			    "incomplete: %s",
		    i->to, why);
	c->told_in_place = true;
	free(i->temporary);
	free(i->final);
	i->temporary = i->final = NULL;
	start_upload(i);
}

char *
temporary_beside(const char *path)
{
	const char *slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path) + 1 : 0;
	static uint32_t random[64];
	static size_t left;
	char handle[32];

	transfer_handle(handle);
	if (left == 0 &&
	    getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		memset(random, getpid(), sizeof(random));
	left = left > 0 ? left - 1 : nitems(random) - 1;
	return xasprintf("%.*s.%s-%08x", length, path, handle, random[left]);
}

static void
mode_taken_over(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code != 0)
		upload_in_place(i, a->message);
	else
		start_upload(i);
}

/* A file that is replaced keeps its mode: the temporary file begins as a copy
 * of it. A secret must not become readable because it is written again. */
static void
take_over_mode(struct copy_item *i)
{
	struct json_text t;

	params_begin(&t, "sourcePath", i->final);
	json_key_path(&t.w, "destinationPath", i->temporary);
	json_key_bool(&t.w, "recursive", false);
	ask_next(i, "fs/copy", &t, mode_taken_over);
}

static void
private_made(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code != 0)
		remove_temporary(i, a->code, a->message);
	else
		start_upload(i);
}

static void
empty_made(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code == 0)
		ask_mode(i, i->temporary, 0600, private_made);
	else if (i->keeps)
		upload_in_place(i, a->message);
	else
		upload_failed(i, a->code, a->message, NULL);
}

/* A file that only its owner may read is one before its first byte, and its
 * owner can write to it until then. So is one that replaces another: nobody
 * knows yet who may read that one. */
static void
start_new(struct copy_item *i)
{
	struct json_text t;

	i->hidden = (i->facts.mode & 077) == 0 &&
		    execd_client_can(i->copy->ctl->client, CAN_CHMOD);
	if (!i->keeps && !i->hidden) {
		start_upload(i);
		return;
	}
	params_begin(&t, "path", i->temporary);
	json_key_cstring(&t.w, "dataBase64", "");
	ask_next(i, "fs/writeFile", &t, empty_made);
}

/* A server of an earlier release keeps the mode, and does not say what is lost
 * besides. */
static void
replace_remote(struct copy_item *i)
{
	struct copy *c = i->copy;

	i->temporary = temporary_beside(i->final);
	i->keeps = execd_client_can(c->ctl->client, CAN_MOVE_KEEP) &&
		   execd_client_can(c->ctl->client, CAN_CHMOD);
	if (i->keeps) {
		start_new(i);
		return;
	}
	if (!c->told_replaces)
		copy_unkept(c, i->to,
		    "owner, hard links and access control list of files that "
		    "are replaced: this server keeps none");
	c->told_replaces = true;
	take_over_mode(i);
}

static void
link_followed(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	i->final = a->code == 0 ? uri_path(json_get(a->result, "path")) : NULL;
	if (i->final == NULL) {
		upload_in_place(i, "the link cannot be followed");
		return;
	}
	replace_remote(i);
}

/* Nothing is under the name but perhaps a link that leads nowhere. */
static void
missing_known(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;

	if (a->code == 0) {
		upload_failed(
		    i, RPC_NOT_FOUND, "it is a link that leads nowhere", NULL);
		return;
	}
	i->final = xstrdup(i->to);
	i->temporary = temporary_beside(i->final);
	start_new(i);
}

/* Only with details a link that leads nowhere is not missing. In a tree it is
 * replaced, as a link that leads elsewhere than before. */
static void
ask_missing(struct copy_item *i)
{
	struct json_text t;

	if (i->in_tree) {
		missing_known(i, &(struct execd_answer){ .code = -1 });
		return;
	}
	params_begin(&t, "path", i->to);
	json_key_bool(&t.w, "details", true);
	ask_next(i, "fs/getMetadata", &t, missing_known);
}

static void
file_known(struct copy_item *i, bool link)
{
	if (link) {
		ask_path(
		    i->copy->ctl, "fs/canonicalize", i->to, link_followed, i);
		return;
	}
	i->final = xstrdup(i->to);
	replace_remote(i);
}

/* Handles what exists under the final name. */
static void
target_known(void *arg, const struct execd_answer *a)
{
	struct copy_item *i = arg;
	bool can = execd_client_can(i->copy->ctl->client, CAN_MOVE);
	bool file = execd_json_bool(json_get(a->result, "isFile"), false);
	bool link = execd_json_bool(json_get(a->result, "isSymlink"), false);
	bool directory =
	    execd_json_bool(json_get(a->result, "isDirectory"), false);

	if (a->code == 0 && !file && !directory)
		upload_failed(i, RPC_MALFORMED, COPY_SPECIAL, NULL);
	else if (!can)
		upload_in_place(i, "the server cannot rename files");
	else if (a->code == RPC_NOT_FOUND)
		ask_missing(i);
	else if (a->code == 0 && file)
		file_known(i, link);
	else
		upload_in_place(i, a->code ? a->message : "it is a directory");
}

void
copy_upload(struct copy *c, const char *from, const char *to)
{
	struct copy_item *i = copy_item_new(c, from, to);
	struct stat st;

	i->fd = c->spool >= 0 ? steal_fd(&c->spool)
			      : open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (i->fd < 0 || fstat(i->fd, &st) < 0) {
		copy_item_failed(i, strerror(errno));
		return;
	}
	if (!S_ISREG(st.st_mode)) {
		copy_skipped(c, from, "neither a file nor a directory");
		copy_item_free(i);
		return;
	}
	facts_of_local(&i->facts, &st);
	i->facts.attributes = c->preserve && file_has_attributes(i->fd, NULL);
	i->upload = (struct upload){
		.t = { .ctl = c->ctl, .done = upload_done, .arg = i },
		.size = (uint64_t)st.st_size,
		.read = read_local,
		.next_data = next_local_data,
		.progress = uploaded_so_far,
	};
	ask_path(c->ctl, "fs/getMetadata", i->to, target_known, i);
}

/*
 * A file copied from the server: holes, and its name, its mode and its time
 * when it is complete.
 */

#define HOLE_BYTES 65536 /* zeros that become a hole */

int
write_piece(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static bool
is_zero(const char *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

/* Leaves out blocks of zeros, which become holes. keep_facts() sets the final
 * size. */
int
copy_item_write(void *arg, const void *data, size_t len)
{
	struct copy_item *i = arg;
	bool is_hole = false;
	size_t at = 0;

	while (at < len) {
		const char *piece = (const char *)data + at;
		size_t n = len - at < HOLE_BYTES ? len - at : HOLE_BYTES;
		int err = 0;

		is_hole = n == HOLE_BYTES && is_zero(piece, n);
		if (is_hole)
			err = lseek(i->fd, (off_t)n, SEEK_CUR) < 0 ? -errno : 0;
		else
			err = write_piece(i->fd, piece, n);
		if (err < 0)
			return err;
		at += n;
	}
	i->ends_in_hole = len > 0 && is_hole;
	copy_item_count(i, i->counted + len);
	return 0;
}

/* A new file gets the mode that cp(1) would give it. An existing file keeps its
 * own, unless with -p. */
static mode_t
local_mode(struct copy_item *i)
{
	struct copy *c = i->copy;

	if (!i->facts.has_mode)
		return 0666 & ~c->umask;
	return facts_mode(c, &i->facts, i->from) &
	       ~(c->preserve ? 0 : c->umask);
}

static int
keep_facts(struct copy_item *i)
{
	struct copy *c = i->copy;

	if (i->ends_in_hole && ftruncate(i->fd, (off_t)i->counted) < 0)
		return -errno;
	if (!c->preserve)
		return 0;
	facts_attributes(c, &i->facts, i->from);
	if (!i->facts.has_mode)
		copy_unkept(c, i->from, "the server does not report modes");
	if (!i->facts.has_time || keep_local_time(i->fd, NULL, &i->facts) < 0)
		copy_unkept(c, i->from, "its time of modification");
	return 0;
}

/* If there is nothing of the name, which is the most frequent case. On a
 * network file system close(2) may report a failed write. */
static int
put_new(struct copy_item *i, mode_t mode)
{
	int err = 0;

	if (!i->named && renameat2(AT_FDCWD, i->temporary, AT_FDCWD, i->to,
			     RENAME_NOREPLACE) < 0)
		return -errno;
	if ((!i->named || i->copy->preserve) && fchmod(i->fd, mode) < 0)
		err = -errno;
	if (close(steal_fd(&i->fd)) < 0 && err == 0)
		err = -errno;
	if (err < 0 && !i->named)
		unlink(i->to);
	return err;
}

/* As close(2) does; the file is still needed. */
static int
flush(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy < 0 || close(copy) < 0 ? -errno : 0;
}

static int
put_over(struct copy_item *i, mode_t mode)
{
	const char *unkept = NULL;
	int err = is_special(i->to) ? -ENOTSUP : flush(i->fd);

	if (err == 0)
		err = file_replace(i->fd, i->temporary, i->to, (int)mode,
		    i->copy->preserve, &unkept);

	if (err == 0 && unkept != NULL)
		copy_unkept(i->copy, i->to, unkept);
	return err;
}

/* Gives the complete file its final name. EINVAL: the file system cannot do
 * it only if there is nothing. */
static int
put_in_place(struct copy_item *i)
{
	int err = keep_facts(i);
	mode_t mode = local_mode(i);

	if (err == 0)
		err = i->replaces ? -EEXIST : put_new(i, mode);
	if (err == -EEXIST || err == -EINVAL)
		err = put_over(i, mode);
	if (err < 0)
		return err;
	free(i->temporary);
	i->temporary = NULL;
	return 0;
}

void
copy_item_written(void *arg, int code, const char *message)
{
	struct copy_item *i = arg;
	_cleanup_free_ char *why = NULL;

	if (code == 0) {
		code = put_in_place(i);
		message = code == -ENOTSUP ? COPY_SPECIAL : strerror(-code);
	}
	if (code != 0)
		why = xasprintf("to %s: %s", i->to, message);
	copy_item_done(i, code, why);
}

static int
open_new(struct copy_item *i, char *name, mode_t mode)
{
	i->fd = open(
	    name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (i->fd < 0) {
		free(name);
		return -errno;
	}
	i->temporary = name;
	return 0;
}

/* Only the user can read the file until it gets its final mode, which a new
 * file has at once. */
static int
open_local(struct copy_item *i, bool whole)
{
	int err = -EEXIST;

	if (whole)
		err = open_new(i, xstrdup(i->to),
		    i->copy->preserve ? 0600 : local_mode(i));
	i->named = err == 0;
	i->replaces = whole && err == -EEXIST;
	if (err == -EEXIST)
		err = open_new(i, temporary_beside(i->to), 0600);
	return err;
}

struct copy_item *
copy_item_local(struct copy *c, const char *from, const char *to,
    const struct facts *facts, bool whole)
{
	struct copy_item *i = copy_item_new(c, from, to);
	_cleanup_free_ char *why = NULL;
	int err;

	i->facts = *facts;
	err = open_local(i, whole);
	if (err < 0) {
		why = xasprintf("to %s: %s", to, strerror(-err));
		if (err == -ENOSPC || err == -EDQUOT)
			c->stop = true;
		copy_item_failed(i, why);
		return NULL;
	}
	return i;
}

void
copy_download(
    struct copy *c, const char *from, const char *to, const struct facts *facts)
{
	_cleanup_free_ char *why = NULL;
	struct copy_item *i;

	/* Nothing is asked for in vain. */
	if (is_special(to)) {
		why = xasprintf("to %s: %s", to, COPY_SPECIAL);
		copy_failed(c, from, why);
		return;
	}
	i = copy_item_local(c, from, to, facts, false);
	if (i == NULL)
		return;
	i->download = (struct download){
		.t = { .ctl = c->ctl,
		    .path = xstrdup(from),
		    .done = copy_item_written,
		    .arg = i },
		.write = copy_item_write,
	};
	download_start(&i->download);
}
