/* SPDX-License-Identifier: ISC */
#include "transfer.h"

#include "base64.h"
#include "capabilities.h"
#include "jsonrpc.h"
#include "path_uri.h"

void
transfer_handle(char handle[32])
{
	static unsigned long counter;

	snprintf(handle, 32, "execctl-%lu", ++counter);
}

/* Begins the params of a request for the transfer's handle. */
static void
transfer_begin(const struct transfer *t, struct json_text *params)
{
	object_begin(params);
	json_key_cstring(&params->w, "handleId", t->handle);
}

/* Ends the params, and sends the request. The answer goes to
 * fn(owner). */
static void
transfer_ask(struct transfer *t, const char *method, struct json_text *params,
    execd_answer_fn *fn, void *owner)
{
	json_end(&params->w, '}');
	t->waiting++;
	execd_client_request(t->ctl->client, method,
	    (const char *)params->buf.data, params->buf.len, 0, fn, owner);
	buf_clear(&params->buf);
}

/* Opens the file under a new handle. */
static void
transfer_open(struct transfer *t, const char *mode, bool append,
    execd_answer_fn *fn, void *owner)
{
	struct json_text params;

	transfer_handle(t->handle);
	t->lost = t->closing = false;
	transfer_begin(t, &params);
	json_key_path(&params.w, "path", t->path);
	files_sandbox_add(&params.w);
	json_key_cstring(&params.w, "mode", mode);
	if (append)
		json_key_bool(&params.w, "append", true);
	transfer_ask(t, "fs/open", &params, fn, owner);
}

/* Asks for the file's metadata. It may be asked again on another
 * connection. */
static void
transfer_identify(struct transfer *t, execd_answer_fn *fn, void *owner)
{
	t->waiting++;
	ask_path(t->ctl, "fs/getMetadata", t->path, fn, owner);
}

/* Asks to close the handle. */
static void
transfer_close(struct transfer *t, execd_answer_fn *fn, void *owner)
{
	struct json_text params;

	t->closing = true;
	transfer_begin(t, &params);
	transfer_ask(t, "fs/close", &params, fn, owner);
}

/* Notes the first failure: done() will get this code and message. */
static void
transfer_fail(struct transfer *t, int code, const char *message)
{
	if (t->code != 0 || t->ended)
		return;
	t->code = code;
	t->message = xstrdup(message);
}

/* Takes the answer's error, if any. Returns true if the result must be
 * handled. */
static bool
transfer_take_answer(struct transfer *t, const struct execd_answer *a)
{
	t->waiting--;
	if (a->code == EXECD_CODE_LOST)
		t->lost = true;
	else if (a->code != 0 && !t->lost)
		transfer_fail(t, a->code, a->message);
	return a->code == 0 && t->code == 0 && !t->lost;
}

/* Likewise for a block. If the server does not know the handle any more, it is
 * lost as with the connection. */
static bool
transfer_take_block(struct transfer *t, const struct execd_answer *a)
{
	const struct execd_answer lost = { .code = EXECD_CODE_LOST };

	if (a->code != RPC_NOT_FOUND)
		return transfer_take_answer(t, a);
	if (!t->lost && t->code == 0) {
		execctl_tell(t->ctl, "%s: %s", t->path, a->message);
		free(t->why);
		t->why = xstrdup(a->message);
	}
	return transfer_take_answer(t, &lost);
}

/* Calls done(). */
static void
transfer_finish(struct transfer *t)
{
	t->ended = true;
	t->done(t->arg, t->code, t->message ? t->message : "");
}

/* Counts another attempt. When none is left, it ends the transfer with
 * transfer_finish() and returns false. */
static bool
transfer_try_again(struct transfer *t)
{
	if (execd_client_state(t->ctl->client) != EXECD_OVER &&
	    ++t->attempts <= TRANSFER_ATTEMPTS)
		return true;
	transfer_fail(t, EXECD_CODE_LOST,
	    t->why != NULL && t->attempts > TRANSFER_ATTEMPTS
		? t->why
		: execd_client_error(t->ctl->client));
	transfer_finish(t);
	return false;
}

static void
transfer_clear(struct transfer *t)
{
	free(t->path);
	free(t->message);
	free(t->why);
	t->path = t->message = t->why = NULL;
}

/* --- downloads ------------------------------------------------------------ */

static void download_step(struct download *d);

void
download_fail(struct download *d, int code, const char *message)
{
	transfer_fail(&d->t, code, message);
}

/* --- Answers ------------------------------------------------------------ */

static void
download_opened(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;

	transfer_take_answer(&d->t, a);
	download_step(d);
}

static void
download_closed(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;

	/* The file is complete, so the result of fs/close does not matter. */
	d->t.waiting--;
	d->t.ended = true;
	download_step(d);
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
	d->t.attempts = 0;
	d->got += (uint64_t)n;
	d->eof = n < TRANSFER_BLOCK;
	err = n > 0 ? d->write(d->t.arg, data, (size_t)n) : 0;
	if (err < 0)
		download_fail(d, err, strerror(-err));
}

static void
got_block(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;

	/* Blocks after the end of the file are empty. */
	if (transfer_take_block(&d->t, a) && !d->eof)
		take_block(d, a->result);
	download_step(d);
}

static void
identified(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;
	int64_t size, modified;

	if (transfer_take_answer(&d->t, a)) {
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
	download_step(d);
}

/* --- Requests ----------------------------------------------------------- */

static void
download_open(struct download *d)
{
	d->asked = d->got;
	d->t.lost = false;
	/* Size and time tell whether it is the same file after a lost
	 * connection. */
	if (d->got > 0)
		transfer_identify(&d->t, identified, d);
	transfer_open(&d->t, "read", false, download_opened, d);
}

static void
ask_block(struct download *d)
{
	struct json_text t;

	transfer_begin(&d->t, &t);
	json_key_u64(&t.w, "offset", d->asked);
	json_key_u64(&t.w, "len", TRANSFER_BLOCK);
	d->asked += TRANSFER_BLOCK;
	transfer_ask(&d->t, "fs/readBlock", &t, got_block, d);
}

static void
download_again(struct download *d)
{
	if (!transfer_try_again(&d->t))
		return;
	execctl_tell(d->t.ctl, "%s: continues at byte %llu", d->t.path,
	    (unsigned long long)d->got);
	download_open(d);
	download_step(d);
}

/* Does everything that is possible now. Until the first block has come, at most
 * two requests are under way, because most files end in that block. */
static void
download_step(struct download *d)
{
	unsigned int window = d->got == 0 ? 2 : TRANSFER_WINDOW;

	if (d->t.ended) {
		if (d->t.waiting == 0)
			transfer_finish(&d->t);
		return;
	}
	while (d->t.code == 0 && !d->t.lost && !d->eof &&
	       d->t.waiting < window &&
	       (d->ready == NULL || d->ready(d->t.arg)))
		ask_block(d);
	if (d->got == TRANSFER_BLOCK && !d->identified && !d->eof &&
	    d->t.code == 0 && !d->t.lost && d->size == 0) {
		d->size = -1;
		transfer_identify(&d->t, identified, d);
	}
	if (d->t.waiting > 0)
		return;
	if (d->t.code != 0)
		transfer_finish(&d->t);
	else if (d->eof)
		transfer_close(&d->t, download_closed, d);
	else if (d->t.lost)
		download_again(d);
}

void
download_start(struct download *d)
{
	download_open(d);
	download_step(d);
}

void
download_update(struct download *d)
{
	if (!d->t.ended && !d->t.closing)
		download_step(d);
}

void
download_clear(struct download *d)
{
	transfer_clear(&d->t);
}

/* --- uploads -------------------------------------------------------------- */

#define QUEUED_MAX (16u << 20) /* bytes queued, for all uploads */

static void upload_step(struct upload *u);

/* --- Answers ------------------------------------------------------------ */

static void
upload_opened(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	transfer_take_answer(&u->t, a);
	upload_step(u);
}

/* Blocks are answered in order. */
static void
put_block(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	uint64_t end = u->ends[u->blocks_answered++ % TRANSFER_WINDOW];

	if (transfer_take_block(&u->t, a)) {
		u->t.attempts = 0;
		u->acknowledged = end;
		if (u->progress != NULL)
			u->progress(u->t.arg, u->acknowledged);
	}
	upload_step(u);
}

static void
upload_closed(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;

	if (transfer_take_answer(&u->t, a))
		u->t.ended = true;
	upload_step(u);
}

/* --- Requests ----------------------------------------------------------- */

static void
upload_open(struct upload *u)
{
	u->sent = u->acknowledged = 0;
	u->blocks_sent = u->blocks_answered = 0;
	transfer_open(&u->t, "replace", false, upload_opened, u);
}

/* What the server has must be what was sent. Blocks without an answer may have
 * been written, and are written again. */
static void
upload_appends(void *arg, const struct execd_answer *a)
{
	struct upload *u = arg;
	int64_t size = execd_json_number(json_get(a->result, "size"), -1);
	bool fits = a->code == 0 && size >= (int64_t)u->acknowledged &&
		    (uint64_t)size <= u->size;

	u->t.waiting--;
	u->t.lost = !fits;
	u->no_append = !fits && a->code != EXECD_CODE_LOST;
	if (fits)
		execctl_tell(u->t.ctl, "%s: continues at byte %" PRIu64,
		    u->t.path, u->acknowledged);
	upload_step(u);
}

static void
send_bytes(struct upload *u, size_t n)
{
	struct json_text t;
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
	transfer_begin(&u->t, &t);
	json_key_u64(&t.w, "offset", u->sent);
	json_key_base64(&t.w, "chunk", u->block, n);
	u->sent += n;
	u->ends[u->blocks_sent++ % TRANSFER_WINDOW] = u->sent;
	transfer_ask(&u->t, "fs/writeBlock", &t, put_block, u);
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

/* The handle was lost with the connection. A server that can open a file
 * without truncating it keeps what it has. A small file is sent again. */
static void
upload_again(struct upload *u)
{
	if (!transfer_try_again(&u->t))
		return;
	if (u->acknowledged >= TRANSFER_BLOCK && !u->no_append &&
	    execd_client_can(u->t.ctl->client, CAN_APPEND)) {
		u->sent = u->acknowledged;
		u->blocks_sent = u->blocks_answered = 0;
		transfer_open(&u->t, "replace", true, upload_appends, u);
		return;
	}
	execctl_tell(u->t.ctl, "%s: starts again", u->t.path);
	upload_open(u);
	upload_step(u);
}

static void
upload_step(struct upload *u)
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
		transfer_close(&u->t, upload_closed, u);
	if (u->t.waiting > 0)
		return;
	if (u->t.code != 0)
		transfer_finish(&u->t);
	else if (u->t.lost)
		upload_again(u);
}

void
upload_start(struct upload *u)
{
	upload_open(u);
	upload_step(u);
}

void
upload_clear(struct upload *u)
{
	transfer_clear(&u->t);
	free(u->block);
	u->block = NULL;
}
