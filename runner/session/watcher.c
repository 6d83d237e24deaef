/* SPDX-License-Identifier: ISC */
/*
 * Connections that watch a session.
 */
#include "base.h"
#include "session.h"

#include "jsonrpc.h"

struct watcher {
	TAILQ_ENTRY(watcher) link; /* session.watchers */
	struct client client;
	uint32_t number; /* given by the broker */
	bool lagging;	 /* an event was not sent */
};

/*
 * The object is freed only at the end of the turn, because its channel may be
 * in use now.
 */
static void
end_watcher(struct watcher *w, enum channel_end end)
{
	struct session *s = w->client.session;

	if (!channel_is_open(&w->client.channel))
		return;
	/* The report goes first, then the end of file (session_detach). */
	s->report_unwatched(w->number, end);
	channel_close(&w->client.channel);
	session_drop_waiters(&w->client);
	s->server->left(&w->client);
}

static void
on_message(struct channel *ch, char *text, size_t len)
{
	struct watcher *w = ch->owner;

	w->client.session->server->message(&w->client, text, len);
}

/* The watcher reads again. It is told once that it missed events. */
static void
on_drained(struct channel *ch)
{
	struct watcher *w = ch->owner;
	struct json_writer j;

	if (!w->lagging)
		return;
	w->lagging = false;
	j = channel_begin(ch);
	rpc_begin_notification(&j, "session/lagged");
	json_raw(&j, "{}", 2);
	rpc_end_notification(&j);
	channel_send(ch);
}

static void
on_ended(struct channel *ch)
{
	struct watcher *w = ch->owner;

	w->client.input_ended = true;
	session_answer_waiters(&w->client);
}

static void
on_broken(struct channel *ch, int err)
{
	if (err == -EBADMSG || err == -EMSGSIZE)
		log_error(err, "channel of a watching connection: impossible "
			       "frame");
	end_watcher(ch->owner, CHANNEL_END_DETACHED);
}

static const struct channel_events channel_events = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

void
watcher_add(struct session *s, int fd, const struct control_watch *command)
{
	struct watcher *w = xcalloc(1, sizeof(*w));

	w->number = command->number;
	w->client.session = s;
	w->client.state = SESSION_NEW;
	w->client.watching = true;
	snprintf(w->client.peer, sizeof(w->client.peer), "%s", command->peer);
	channel_open(&w->client.channel, s->base, fd, fd,
	    (uint32_t)s->config.max_message_bytes, &channel_events, w);
	TAILQ_INSERT_TAIL(&s->watchers, w, link);
}

void
watchers_tell(struct session_process *p, const struct process_event *e)
{
	struct watcher *w;

	TAILQ_FOREACH (w, &p->session->watchers, link) {
		struct client *c = &w->client;

		if (!channel_is_open(&c->channel) || c->violated ||
		    c->state == SESSION_NEW)
			continue;
		if (w->lagging || channel_congested(&c->channel))
			w->lagging = true;
		else
			session_tell(c, p, e);
	}
}

void
watchers_flush(struct session *s)
{
	struct watcher *w, *next;

	TAILQ_FOREACH_SAFE (w, &s->watchers, link, next) {
		struct client *c = &w->client;

		channel_flush(&c->channel);
		if (channel_is_open(&c->channel) &&
		    channel_drained(&c->channel)) {
			if (c->violated)
				end_watcher(w, CHANNEL_END_PROTOCOL);
			else if (c->input_ended && c->waiting == 0)
				end_watcher(w, CHANNEL_END_DETACHED);
		}
		if (channel_is_open(&c->channel))
			continue;
		TAILQ_REMOVE(&s->watchers, w, link);
		free(w);
	}
}
