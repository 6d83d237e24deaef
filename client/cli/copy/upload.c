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

/* --- Answers ------------------------------------------------------------ */

static void
opened(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	transfer_take_answer(&u->t, a);
	update(u);
}

/* Blocks are answered in order. */
static void
put_block(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	uint64_t end = u->ends[u->blocks_answered++ % TRANSFER_WINDOW];

	if (transfer_take_answer(&u->t, a)) {
		u->t.attempts = 0;
		u->acknowledged = end;
		if (u->progress != NULL)
			u->progress(u->t.arg, u->acknowledged);
	}
	update(u);
}

static void
closed(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	if (transfer_take_answer(&u->t, a))
		u->t.ended = true;
	update(u);
}

/* --- Requests ----------------------------------------------------------- */

static void
open_handle(struct upload *u)
{
	u->opened = true;
	u->sent = u->acknowledged = 0;
	u->blocks_sent = u->blocks_answered = 0;
	transfer_open(&u->t, "replace", opened, u);
}

static void
send_bytes(struct upload *u, size_t n)
{
	struct json_writer w;
	struct buf b;
	int err;

	if (u->block == NULL)
		u->block = xmalloc(TRANSFER_BLOCK);
	err = u->read(u->t.arg, u->sent, u->block, n);
	if (err < 0) {
		transfer_fail(&u->t, err,
		    err == -ENODATA ? "it became shorter while it was copied"
				    : strerror(-err));
		return;
	}
	transfer_begin(&u->t, &b, &w);
	json_key_u64(&w, "offset", u->sent);
	json_key(&w, "chunk");
	json_base64(&w, u->block, n);
	u->sent += n;
	u->ends[u->blocks_sent++ % TRANSFER_WINDOW] = u->sent;
	transfer_ask(&u->t, "fs/writeBlock", &b, &w, 0, put_block, u);
}

/* Skips a hole, but not the last byte, which sets the file's size. */
static void
pass_hole(struct upload *u)
{
	uint64_t next;

	if (u->next_data == NULL)
		return;
	next = u->next_data(u->t.arg, u->sent);
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

/* The handle was lost with the connection. What the server has stays, and the
 * rest is appended. A small file is sent again. */
static void
try_again(struct upload *u)
{
	if (!transfer_try_again(&u->t))
		return;
	if (u->acknowledged >= TRANSFER_BLOCK && !u->no_append) {
		u->t.lost = false;
		upload_append(u);
		return;
	}
	execctl_tell(u->t.ctl, "%s: starts again", u->t.path);
	open_handle(u);
	update(u);
}

static void
upload_appended(struct upload *u, bool worked)
{
	if (worked) {
		transfer_finish(&u->t);
		return;
	}
	u->no_append = true;
	u->t.lost = true;
	update(u);
}

static void
update(struct upload *u)
{
	if (u->t.ended) {
		if (u->t.waiting == 0)
			transfer_finish(&u->t);
		return;
	}
	while (u->t.code == 0 && !u->t.lost && u->sent < u->size &&
	       u->t.waiting < TRANSFER_WINDOW &&
	       (u->t.waiting == 0 ||
		   execd_client_queued(u->t.ctl->client) < QUEUED_MAX))
		send_block(u);
	/* Sends fs/close right after the last block, without waiting for its
	 * answer. */
	if (u->t.code == 0 && !u->t.lost && u->sent == u->size && !u->t.closing)
		transfer_close(&u->t, closed, u);
	if (u->t.waiting > 0)
		return;
	if (u->t.code != 0)
		transfer_finish(&u->t);
	else if (u->t.lost)
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
	transfer_clear(&u->t);
	free(u->block);
	u->append = NULL;
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

		if (u->read(u->t.arg, u->sent, u->block, n) < 0) {
			u->append_code = 1;
			execd_process_terminate(u->append, 0);
			return;
		}
		u->sent += n;
		u->append_writes++;
		execd_process_write(u->append, u->block, n, written, u);
		if (u->progress != NULL)
			u->progress(u->t.arg, u->sent);
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

	u->t.waiting--;
	if (a->code != 0 || size < 0 || (uint64_t)size != u->size)
		execctl_tell(u->t.ctl, "%s: appending failed", u->t.path);
	upload_appended(
	    u, a->code == 0 && size >= 0 && (uint64_t)size == u->size);
}

static void
ended(void *arg)
{
	struct upload *u = arg;

	/* The exit status is not enough: the file must also have the right
	 * size. */
	transfer_identify(&u->t, check_size, u);
}

static void
failed(void *arg, int code, const char *message)
{
	struct upload *u = arg;

	execctl_tell(u->t.ctl, "%s: appending: %s", u->t.path, message);
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
		count, u->t.path, NULL };
	struct execd_start start = {
		.argv = argv,
		.cwd = "/",
		.pipe_stdin = true,
		/* The rest is written under the same sandbox as the beginning.
		 */
		.sandbox = files_sandbox_text(),
	};

	u->t.waiting--;
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
	    u->t.ctl, "%s: continues at byte %" PRIu64, u->t.path, u->sent);
	execd_process_free(u->append);
	u->append = NULL;
	if (execd_process_start(
		u->t.ctl->client, &start, &events, u, &u->append) < 0)
		upload_appended(u, false);
}

/* A command on the server appends the rest of the file. Calls
 * upload_appended() at the end. */
static void
upload_append(struct upload *u)
{
	transfer_identify(&u->t, start_append, u);
}
