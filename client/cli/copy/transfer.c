/* SPDX-License-Identifier: ISC */
/*
 * What uploads and downloads have in common: the handle, requests and their
 * answers, attempts, and the end.
 */
#include "transfer.h"

#include <stdio.h>
#include <stdlib.h>

#include "path_uri.h"
#include "util.h"

void
transfer_handle(char handle[32])
{
	static unsigned long counter;

	snprintf(handle, 32, "execctl-%lu", ++counter);
}

void
transfer_begin(const struct transfer *t, struct buf *b, struct json_writer *w)
{
	buf_init(b, 4u << 20);
	json_writer_init(w, b);
	json_begin(w, '{');
	json_key_cstring(w, "handleId", t->handle);
}

void
transfer_ask(struct transfer *t, const char *method, struct buf *b,
    struct json_writer *w, unsigned int flags, execd_answer_fn *fn, void *owner)
{
	json_end(w, '}');
	t->waiting++;
	execd_client_request(t->ctl->client, method, (const char *)b->data,
	    b->len, flags, fn, owner);
	buf_clear(b);
}

void
transfer_open(
    struct transfer *t, const char *mode, execd_answer_fn *fn, void *owner)
{
	struct json_writer w;
	struct buf b;

	transfer_handle(t->handle);
	t->lost = t->closing = false;
	transfer_begin(t, &b, &w);
	json_key(&w, "path");
	json_path(&w, t->path);
	files_sandbox_add(&w);
	json_key_cstring(&w, "mode", mode);
	transfer_ask(t, "fs/open", &b, &w, 0, fn, owner);
}

void
transfer_identify(struct transfer *t, execd_answer_fn *fn, void *owner)
{
	struct json_writer w;
	struct buf b;

	params_path(&b, &w, "path", t->path);
	transfer_ask(t, "fs/getMetadata", &b, &w, EXECD_REPEAT, fn, owner);
}

void
transfer_close(struct transfer *t, execd_answer_fn *fn, void *owner)
{
	struct json_writer w;
	struct buf b;

	t->closing = true;
	transfer_begin(t, &b, &w);
	transfer_ask(t, "fs/close", &b, &w, 0, fn, owner);
}

bool
transfer_take_answer(struct transfer *t, const struct execd_answer *a)
{
	t->waiting--;
	if (a->code == EXECD_CODE_LOST)
		t->lost = true;
	else if (a->code != 0 && !t->lost)
		transfer_fail(t, a->code, a->message);
	return a->code == 0 && t->code == 0 && !t->lost;
}

void
transfer_fail(struct transfer *t, int code, const char *message)
{
	if (t->code != 0 || t->ended)
		return;
	t->code = code;
	t->message = xstrdup(message);
}

void
transfer_finish(struct transfer *t)
{
	t->ended = true;
	t->done(t->arg, t->code, t->message ? t->message : "");
}

bool
transfer_try_again(struct transfer *t)
{
	if (execd_client_state(t->ctl->client) != EXECD_OVER &&
	    ++t->attempts <= TRANSFER_ATTEMPTS)
		return true;
	transfer_fail(t, EXECD_CODE_LOST, execd_client_error(t->ctl->client));
	transfer_finish(t);
	return false;
}

void
transfer_clear(struct transfer *t)
{
	free(t->path);
	free(t->message);
	t->path = t->message = NULL;
}
