/* SPDX-License-Identifier: ISC */
/*
 * Downloads one file from the server.
 */
#include <errno.h>
#include <string.h>

#include "base64.h"
#include "execctl.h"
#include "path_uri.h"
#include "transfer.h"

static void update(struct download *d);

void
download_fail(struct download *d, int code, const char *message)
{
	transfer_fail(&d->t, code, message);
}

/* --- Answers ------------------------------------------------------------ */

static void
opened(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;

	transfer_take_answer(&d->t, a);
	update(d);
}

static void
closed(void *arg, const struct execd_answer *a)
{
	struct download *d = arg;

	/* The file is complete, so the result of fs/close does not matter. */
	d->t.waiting--;
	d->t.ended = true;
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
	if (transfer_take_answer(&d->t, a) && !d->eof)
		take_block(d, a->result);
	update(d);
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
	update(d);
}

/* --- Requests ----------------------------------------------------------- */

static void
open_handle(struct download *d)
{
	d->asked = d->got;
	d->t.lost = false;
	/* Size and time tell whether it is the same file after a lost
	 * connection. */
	if (d->got > 0)
		transfer_identify(&d->t, identified, d);
	transfer_open(&d->t, "read", opened, d);
}

static void
ask_block(struct download *d)
{
	struct json_writer w;
	struct buf b;

	transfer_begin(&d->t, &b, &w);
	json_key_u64(&w, "offset", d->asked);
	json_key_u64(&w, "len", TRANSFER_BLOCK);
	d->asked += TRANSFER_BLOCK;
	transfer_ask(&d->t, "fs/readBlock", &b, &w, 0, got_block, d);
}

static void
try_again(struct download *d)
{
	if (!transfer_try_again(&d->t))
		return;
	execctl_tell(d->t.ctl, "%s: continues at byte %llu", d->t.path,
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
		transfer_close(&d->t, closed, d);
	else if (d->t.lost)
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
	if (!d->t.ended && !d->t.closing)
		update(d);
}

void
download_clear(struct download *d)
{
	transfer_clear(&d->t);
}
