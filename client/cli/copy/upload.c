/* SPDX-License-Identifier: ISC */
/*
 * Uploads one file to the server. After a lost connection a command on the
 * server appends the rest, because no file method opens a file without
 * truncating it. The input of that command survives lost connections, and each
 * byte arrives once.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "execctl.h"
#include "path_uri.h"
#include "transfer.h"

#define QUEUED_MAX (16u << 20) /* bytes queued, for all uploads */

static void update(struct upload *u);

static void upload_append(struct upload *u);

static void
upload_fail(struct upload *u, int code, const char *message)
{
	if (u->code != 0)
		return;
	u->code = code;
	u->message = xstrdup(message);
}

static void
begin(struct buf *b, struct json_writer *w, const char *handle)
{
	buf_init(b, 4u << 20);
	json_writer_init(w, b);
	json_begin(w, '{');
	json_key_cstring(w, "handleId", handle);
}

/* --- Answers ------------------------------------------------------------ */

static bool
take_answer(struct upload *u, const struct execd_answer *a)
{
	u->waiting--;
	if (a->code == EXECD_CODE_LOST)
		u->lost = true;
	else if (a->code != 0 && !u->lost)
		upload_fail(u, a->code, a->message);
	return a->code == 0 && u->code == 0 && !u->lost;
}

static void
opened(void *arg, const struct execd_answer *a)
{
	take_answer(arg, a);
	update(arg);
}

/* Blocks are answered in order. */
static void
put_block(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	uint64_t end = u->ends[u->blocks_answered++ % TRANSFER_WINDOW];

	if (take_answer(u, a)) {
		u->attempts = 0;
		u->acknowledged = end;
		if (u->progress != NULL)
			u->progress(u->arg, u->acknowledged);
	}
	update(u);
}

static void
closed(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	if (take_answer(u, a))
		u->ended = true;
	update(u);
}

/* --- Requests ----------------------------------------------------------- */

static void
ask(struct upload *u, const char *method, struct buf *b, struct json_writer *w,
    execd_answer_fn *fn)
{
	json_end(w, '}');
	u->waiting++;
	execd_client_request(
	    u->ctl->client, method, (const char *)b->data, b->len, 0, fn, u);
	buf_clear(b);
}

static void
open_handle(struct upload *u)
{
	struct json_writer w;
	struct buf b;

	transfer_handle(u->handle);
	u->opened = true;
	u->lost = u->closing = false;
	u->sent = u->acknowledged = 0;
	u->blocks_sent = u->blocks_answered = 0;
	begin(&b, &w, u->handle);
	json_key(&w, "path");
	json_path(&w, u->path);
	files_sandbox_add(&w);
	json_key_cstring(&w, "mode", "replace");
	ask(u, "fs/open", &b, &w, opened);
}

static void
send_bytes(struct upload *u, size_t n)
{
	struct json_writer w;
	struct buf b;
	int err;

	if (u->block == NULL)
		u->block = xmalloc(TRANSFER_BLOCK);
	err = u->read(u->arg, u->sent, u->block, n);
	if (err < 0) {
		upload_fail(u, err,
		    err == -ENODATA ? "it became shorter while it was copied"
				    : strerror(-err));
		return;
	}
	begin(&b, &w, u->handle);
	json_key_u64(&w, "offset", u->sent);
	json_key(&w, "chunk");
	json_base64(&w, u->block, n);
	u->sent += n;
	u->ends[u->blocks_sent++ % TRANSFER_WINDOW] = u->sent;
	ask(u, "fs/writeBlock", &b, &w, put_block);
}

/* Skips a hole, but not the last byte, which sets the file's size. */
static void
pass_hole(struct upload *u)
{
	uint64_t next;

	if (u->next_data == NULL)
		return;
	next = u->next_data(u->arg, u->sent);
	if (next >= u->size)
		next = u->size - 1;
	if (next > u->sent)
		u->sent = next;
}

static void
send_block(struct upload *u)
{
	pass_hole(u);
	send_bytes(u, u->size - u->sent < TRANSFER_BLOCK
			  ? (size_t)(u->size - u->sent)
			  : TRANSFER_BLOCK);
}

static void
close_handle(struct upload *u)
{
	struct json_writer w;
	struct buf b;

	u->closing = true;
	begin(&b, &w, u->handle);
	ask(u, "fs/close", &b, &w, closed);
}

static void
finish(struct upload *u)
{
	u->ended = true;
	u->done(u->arg, u->code, u->message ? u->message : "");
}

/* The handle was lost with the connection. What the server has stays, and the
 * rest is appended. A small file is sent again. */
static void
try_again(struct upload *u)
{
	if (execd_client_state(u->ctl->client) == EXECD_OVER ||
	    ++u->attempts > TRANSFER_ATTEMPTS) {
		upload_fail(
		    u, EXECD_CODE_LOST, execd_client_error(u->ctl->client));
		finish(u);
		return;
	}
	if (u->acknowledged >= TRANSFER_BLOCK && !u->no_append) {
		u->lost = false;
		upload_append(u);
		return;
	}
	execctl_tell(u->ctl, "%s: starts again", u->path);
	open_handle(u);
	update(u);
}

static void
upload_appended(struct upload *u, bool worked)
{
	if (worked) {
		finish(u);
		return;
	}
	u->no_append = true;
	u->lost = true;
	update(u);
}

static void
update(struct upload *u)
{
	if (u->ended) {
		if (u->waiting == 0)
			finish(u);
		return;
	}
	while (u->code == 0 && !u->lost && u->sent < u->size &&
	       u->waiting < TRANSFER_WINDOW &&
	       (u->waiting == 0 ||
		   execd_client_queued(u->ctl->client) < QUEUED_MAX))
		send_block(u);
	/* Sends fs/close right after the last block, without waiting for its
	 * answer. */
	if (u->code == 0 && !u->lost && u->sent == u->size && !u->closing)
		close_handle(u);
	if (u->waiting > 0)
		return;
	if (u->code != 0)
		finish(u);
	else if (u->lost)
		try_again(u);
}

void
upload_start(struct upload *u)
{
	open_handle(u);
	update(u);
}

void
upload_clear(struct upload *u)
{
	execd_process_free(u->append);
	free(u->path);
	free(u->message);
	free(u->block);
	u->append = NULL;
	u->path = u->message = NULL;
	u->block = NULL;
}

/*
 * Sends the rest of an upload after a lost connection. No file method opens a
 * file without truncating it, so a command on the server appends. Its input
 * survives lost connections, and each byte arrives once.
 */

#define PIECE_BYTES (256u << 10)
#define WRITES_MAX  16 /* under way; servers queue 8 MiB */

static void feed(struct upload *u);

static void
written(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	u->append_writes--;
	if (a->code == 0 &&
	    json_is(json_get(a->result, "status"), "accepted")) {
		feed(u);
		return;
	}
	u->append_code = u->append_code > 0 ? u->append_code : 1;
}

static void
feed(struct upload *u)
{
	while (u->append_code < 0 && u->sent < u->size &&
	       u->append_writes < WRITES_MAX) {
		uint64_t left = u->size - u->sent;
		size_t n = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

		if (u->read(u->arg, u->sent, u->block, n) < 0) {
			u->append_code = 1;
			execd_process_terminate(u->append, 0);
			return;
		}
		u->sent += n;
		u->append_writes++;
		execd_process_write(u->append, u->block, n, written, u);
		if (u->progress != NULL)
			u->progress(u->arg, u->sent);
	}
}

static void
started(void *arg, const char *sandbox_type)
{
	feed(arg);
}

static void
exited(void *arg, const struct execd_exit *how)
{
	struct upload *u = arg;

	if (u->append_code < 0)
		u->append_code = how->code;
}

static void
check_size(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;
	int64_t size = execd_json_number(json_get(a->result, "size"), -1);

	u->waiting--;
	if (a->code != 0 || size < 0 || (uint64_t)size != u->size)
		execctl_tell(u->ctl, "%s: appending failed", u->path);
	upload_appended(
	    u, a->code == 0 && size >= 0 && (uint64_t)size == u->size);
}

static void
ask_size(struct upload *u, execd_answer_fn *fn)
{
	struct json_writer w;
	struct buf b;

	params_path(&b, &w, "path", u->path);
	json_end(&w, '}');
	u->waiting++;
	execd_client_request(u->ctl->client, "fs/getMetadata",
	    (const char *)b.data, b.len, EXECD_REPEAT, fn, u);
	buf_clear(&b);
}

static void
ended(void *arg)
{
	struct upload *u = arg;

	/* The exit status is not enough: the file must also have the right
	 * size. */
	ask_size(u, check_size);
}

static void
failed(void *arg, int code, const char *message)
{
	struct upload *u = arg;

	execctl_tell(u->ctl, "%s: appending: %s", u->path, message);
	upload_appended(u, false);
}

static void
start_append(void *arg, const struct execd_answer *a)
{
	static const struct execd_process_events events = { .started = started,
		.exited = exited,
		.closed = ended,
		.failed = failed };
	struct upload *u = arg;
	int64_t size = execd_json_number(json_get(a->result, "size"), -1);
	char count[24];
	const char *argv[] = { "/bin/sh", "-c", "head -c \"$1\" >>\"$2\"", "sh",
		count, u->path, NULL };
	struct execd_start start = {
		.argv = argv,
		.cwd = "/",
		.pipe_stdin = true,
		/* The rest is written under the same sandbox as the beginning.
		 */
		.sandbox = files_sandbox_text(),
	};

	u->waiting--;
	if (a->code != 0 || size < 0 || (uint64_t)size > u->size) {
		upload_appended(u, false);
		return;
	}
	/* Continues at the real size: unanswered blocks may have been
	 * written. */
	u->sent = (uint64_t)size;
	u->append_code = -1;
	snprintf(count, sizeof(count), "%" PRIu64, u->size - u->sent);
	execctl_tell(
	    u->ctl, "%s: continues at byte %" PRIu64, u->path, u->sent);
	execd_process_free(u->append);
	u->append = NULL;
	if (execd_process_start(
		u->ctl->client, &start, &events, u, &u->append) < 0)
		upload_appended(u, false);
}

/* upload.c: a command on the server appends the rest of a file, because
 * no file method opens a file without truncating it. Calls upload_appended() at
 * the end. */
static void
upload_append(struct upload *u)
{
	ask_size(u, start_append);
}
