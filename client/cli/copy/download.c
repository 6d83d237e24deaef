/* SPDX-License-Identifier: ISC */
/*
 * Downloads one file from the server.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base64.h"
#include "execctl.h"
#include "path_uri.h"
#include "transfer.h"

static void update(struct download *d);

void
transfer_handle(char handle[32])
{
	static unsigned long counter;

	snprintf(handle, 32, "execctl-%lu", ++counter);
}

static void
begin(struct buf *b, struct json_writer *w, const char *handle)
{
	buf_init(b, 1u << 16);
	json_writer_init(w, b);
	json_begin(w, '{');
	json_key_cstring(w, "handleId", handle);
}

static void
ask(struct download *d, const char *method, struct buf *b,
    struct json_writer *w, unsigned int flags, execd_answer_fn *fn)
{
	json_end(w, '}');
	d->waiting++;
	execd_client_request(d->ctl->client, method, (const char *)b->data,
	    b->len, flags, fn, d);
	buf_clear(b);
}

void
download_fail(struct download *d, int code, const char *message)
{
	if (d->code != 0 || d->ended)
		return;
	d->code = code;
	d->message = xstrdup(message);
}

/* Takes the answer's error, if any. Returns true if the result must be
 * handled. */
static bool
take_answer(struct download *d, const struct execd_answer *a)
{
	d->waiting--;
	if (a->code == EXECD_CODE_LOST)
		d->lost = true;
	else if (a->code != 0 && !d->lost)
		download_fail(d, a->code, a->message);
	return a->code == 0 && d->code == 0 && !d->lost;
}

/* --- Answers ------------------------------------------------------------ */

static void
opened(void *arg, const struct execd_answer *a)
{
	take_answer(arg, a);
	update(arg);
}

static void
closed(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;

	/* The file is complete, so the result of fs/close does not matter. */
	d->waiting--;
	d->ended = true;
	update(d);
}

static void
take_block(struct download *d, const struct json_value *result)
{
	const struct json_value *chunk = json_get(result, "chunk");
	size_t len = 0;
	const char *text = execd_json_string(chunk, &len);
	_cleanup_free_ uint8_t *data = xmalloc(base64_decoded_max(len));
	char error[BASE64_ERROR_MAX];
	ssize_t n = text ? base64_decode(data, text, len, error) : -EBADMSG;
	int err;

	if (n < 0 || n > TRANSFER_BLOCK) {
		download_fail(d, EXECD_CODE_LOST,
		    "the server's answer to fs/readBlock is invalid");
		return;
	}
	d->attempts = 0;
	d->got += (uint64_t)n;
	d->eof = n < TRANSFER_BLOCK;
	err = n > 0 ? d->write(d->arg, data, (size_t)n) : 0;
	if (err < 0)
		download_fail(d, err, strerror(-err));
}

static void
got_block(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;

	/* Blocks after the end of the file are empty. */
	if (take_answer(d, a) && !d->eof)
		take_block(d, a->result);
	update(d);
}

static void
identified(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;
	int64_t size, modified;

	if (take_answer(d, a)) {
		size = execd_json_number(json_get(a->result, "size"), -1);
		modified =
		    execd_json_number(json_get(a->result, "modifiedAtMs"), -1);
		if (d->identified &&
		    (size != d->size || modified != d->modified_ms))
			download_fail(d, EXECD_CODE_LOST,
			    "it changed while it was copied");
		d->identified = true;
		d->size = size;
		d->modified_ms = modified;
	}
	update(d);
}

/* --- Requests ----------------------------------------------------------- */

/* Gets size and time, to recognize the file after a lost connection. */
static void
identify(struct download *d)
{
	struct json_writer w;
	struct buf b;

	params_path(&b, &w, "path", d->path);
	ask(d, "fs/getMetadata", &b, &w, EXECD_REPEAT, identified);
}

static void
open_handle(struct download *d)
{
	struct json_writer w;
	struct buf b;

	transfer_handle(d->handle);
	d->lost = false;
	d->asked = d->got;
	if (d->got > 0)
		identify(d);
	begin(&b, &w, d->handle);
	json_key(&w, "path");
	json_path(&w, d->path);
	files_sandbox_add(&w);
	json_key_cstring(&w, "mode", "read");
	ask(d, "fs/open", &b, &w, 0, opened);
}

static void
ask_block(struct download *d)
{
	struct json_writer w;
	struct buf b;

	begin(&b, &w, d->handle);
	json_key_u64(&w, "offset", d->asked);
	json_key_u64(&w, "len", TRANSFER_BLOCK);
	d->asked += TRANSFER_BLOCK;
	ask(d, "fs/readBlock", &b, &w, 0, got_block);
}

static void
close_handle(struct download *d)
{
	struct json_writer w;
	struct buf b;

	d->closing = true;
	begin(&b, &w, d->handle);
	ask(d, "fs/close", &b, &w, 0, closed);
}

static void
finish(struct download *d)
{
	d->ended = true;
	d->done(d->arg, d->code, d->message ? d->message : "");
}

static void
try_again(struct download *d)
{
	if (execd_client_state(d->ctl->client) == EXECD_OVER ||
	    ++d->attempts > TRANSFER_ATTEMPTS) {
		download_fail(
		    d, EXECD_CODE_LOST, execd_client_error(d->ctl->client));
		finish(d);
		return;
	}
	execctl_tell(d->ctl, "%s: continues at byte %llu", d->path,
	    (unsigned long long)d->got);
	open_handle(d);
	update(d);
}

/* Does everything that is possible now. Until the first block has come, at most
 * two requests are under way, because most files end in that block. */
static void
update(struct download *d)
{
	unsigned int window = d->got == 0 ? 2 : TRANSFER_WINDOW;

	if (d->ended) {
		if (d->waiting == 0)
			finish(d);
		return;
	}
	while (d->code == 0 && !d->lost && !d->eof && d->waiting < window &&
	       (d->ready == NULL || d->ready(d->arg)))
		ask_block(d);
	if (d->got == TRANSFER_BLOCK && !d->identified && !d->eof &&
	    d->code == 0 && !d->lost && d->size == 0) {
		d->size = -1;
		identify(d);
	}
	if (d->waiting > 0)
		return;
	if (d->code != 0)
		finish(d);
	else if (d->eof)
		close_handle(d);
	else if (d->lost)
		try_again(d);
}

void
download_start(struct download *d)
{
	open_handle(d);
	update(d);
}

void
download_update(struct download *d)
{
	if (!d->ended && !d->closing)
		update(d);
}

void
download_clear(struct download *d)
{
	free(d->path);
	free(d->message);
	d->path = d->message = NULL;
}
