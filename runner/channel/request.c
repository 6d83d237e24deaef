/* SPDX-License-Identifier: ISC */
#include "request.h"

#include "control.h"
#include "frame.h"
#include "heap.h"
#include "loop.h"

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

static void
send_error(struct channel *ch, const struct rpc_id *id, int code,
    const char *kind, const char *text, size_t len)
{
	struct json_writer w;

	ch->tag |= FRAME_FAILED; /* in a helper: tells its runner */
	w = channel_begin(ch);
	rpc_write_error_kind(&w, id, code, kind, text, len);
	channel_send(ch);
}

int
reply_error_text(struct channel *ch, const struct rpc_id *id, int code,
    const char *text, size_t len)
{
	send_error(ch, id, code, NULL, text, len);
	return 0;
}

int
reply_error(
    struct channel *ch, const struct rpc_id *id, int code, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	return reply_error_text(ch, id, code, text, strlen(text));
}

int
reply_error_kind(struct channel *ch, const struct rpc_id *id, int code,
    const char *kind, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	send_error(ch, id, code, kind, text, strlen(text));
	return 0;
}

int
reply_os_error(struct channel *ch, const struct rpc_id *id, int err)
{
	return reply_error(
	    ch, id, RPC_INTERNAL, "%s (os error %d)", strerror(-err), -err);
}

/* --- a helper's side ---------------------------------------------------- */

/* The runner accepts no larger message (max-message-bytes). */
#define REQUEST_MAX_BYTES (1u << 30)

static struct channel channel;
static serve_fn *answer_request;
static void (*tell_drained)(void);
static bool over;

static void
on_message(struct channel *ch, char *text, size_t len)
{
	static uint32_t number;
	struct request r = { .channel = ch, .spool = channel_take_spool(ch) };
	struct rpc_message m;

	if (rpc_parse(&m, text, len) < 0 || m.kind != RPC_KIND_REQUEST)
		log_fatal("impossible request from the runner");
	rpc_id_copy(&r.id, m.id);
	ch->tag = number = frame_next_number(number);
	answer_request(&r, &m);
	rpc_id_clear(&r.id);
	rpc_message_clear(&m);
	spool_free(r.spool);
}

static void
on_drained(struct channel *ch)
{
	if (tell_drained != NULL)
		tell_drained();
}

static void
on_ended(struct channel *ch)
{
	over = true;
}

static void
on_broken(struct channel *ch, int err)
{
	over = true;
}

static const struct channel_events channel_events = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

void
serve(struct event_base *base, const char *label, serve_fn *answer,
    void (*drained)(void))
{
	log_set_label(label);
	prctl(PR_SET_DUMPABLE, 0);
	answer_request = answer;
	tell_drained = drained;
	channel_open(&channel, base, CONTROL_FD, CONTROL_FD, REQUEST_MAX_BYTES,
	    &channel_events, NULL);
	channel.tagged = channel.takes_fds = true;
	heap_init(base);
	while (!over) {
		loop_turn(base);
		channel_flush(&channel);
		heap_turn();
	}
}
