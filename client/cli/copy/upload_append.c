/* SPDX-License-Identifier: ISC */
/*
 * Sends the rest of an upload after a lost connection. No file method opens a
 * file without truncating it, so a command on the server appends. Its input
 * survives lost connections, and each byte arrives once.
 */
#include <inttypes.h>
#include <stdio.h>

#include "files_sandbox.h"
#include "transfer.h"

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

void
upload_append(struct upload *u)
{
	ask_size(u, start_append);
}
