/* SPDX-License-Identifier: ISC */
/* Answers to the client. */
#include "request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "frame.h"

struct json_writer
reply_begin(struct channel *ch, const struct rpc_id *id)
{
	struct json_writer w = channel_begin(ch);

	rpc_begin_result(&w, id);
	json_begin(&w, '{');
	return w;
}

void
reply_end(struct channel *ch, struct json_writer *w)
{
	json_end(w, '}');
	rpc_end_result(w);
	channel_send(ch);
}

int
reply_empty(struct request *r)
{
	struct json_writer w = reply_begin(r->channel, &r->id);

	reply_end(r->channel, &w);
	return 0;
}

int
reply_error_text(struct channel *ch, const struct rpc_id *id, int code,
    const char *text, size_t len)
{
	struct json_writer w;

	ch->tag |= FRAME_FAILED; /* in a helper: tells its runner */
	w = channel_begin(ch);
	rpc_write_error(&w, id, code, text, len);
	channel_send(ch);
	return 0;
}

int
reply_error(
    struct channel *ch, const struct rpc_id *id, int code, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return reply_error_text(
	    ch, id, code, n < 0 ? "" : text, n < 0 ? 0 : (size_t)n);
}

int
reply_os_error(struct channel *ch, const struct rpc_id *id, int err)
{
	return reply_error(
	    ch, id, RPC_INTERNAL, "%s (os error %d)", strerror(-err), -err);
}
