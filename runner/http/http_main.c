/*
 * execd-http: its channel to the runner, and its one method.
 */
#include <event2/event.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "control.h"
#include "frame.h"
#include "http.h"
#include "log.h"

#define REQUEST_MAX_BYTES (1u << 30)

static struct event_base *base;
static struct channel channel;
static bool over;

/* The runner passes on only what it found to be an HTTP method. */
static void
on_message(struct channel *ch, char *text, size_t len)
{
	struct request r = { .channel = ch };
	char error[ARGS_ERROR_MAX];
	static uint32_t number;
	union method_params p;
	struct rpc_message m;

	if (rpc_parse(&m, text, len) < 0 || m.kind != RPC_KIND_REQUEST ||
	    !slice_equal(m.method, SLICE("http/request")))
		log_fatal("impossible request from the runner");
	rpc_id_copy(&r.id, m.id);
	ch->tag = number = frame_next_number(number);
	if (params_http_request(&m, &p, error) < 0)
		reply_error(ch, &r.id, RPC_INVALID_PARAMS, "%s", error);
	else
		exchange_start(&r, base, &p.http_request);
	rpc_id_clear(&r.id);
	rpc_message_clear(&m);
}

static void
on_drained(struct channel *ch)
{
	exchange_resume_all();
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

int
main(void)
{
	prctl(PR_SET_NAME, "execd-http");
	log_init("execd-http", LOG_LEVEL_INFO);
	log_set_label("http");
	prctl(PR_SET_DUMPABLE, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	close_from(CONTROL_FD + 1);
	base = event_base_new();
	if (base == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		log_fatal("the event loop or curl cannot be set up");
	multi_init(base);
	channel_open(&channel, base, CONTROL_FD, CONTROL_FD, REQUEST_MAX_BYTES,
	    &channel_events, NULL);
	channel.tagged = true;
	while (!over && event_base_loop(base, EVLOOP_ONCE) >= 0)
		channel_flush(&channel);
	return 0;
}
