/* SPDX-License-Identifier: ISC */
/*
 * A compromised front-end: stands where execd-frontend does, holds the real
 * control channel and the channels of real sessions. Each life asks for what
 * it may ask in any order, floods a session with frames, checks that the
 * honest session beside it is as it was, and then says what no front-end may
 * say, which must be its end.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "rogue.h"
#include "rogue_session.h"
#include "seqpacket.h"
#include "util.h"

#define CONNECTIONS   32
#define SESSION_EVERY 4 /* so many lives attack a session, too */

/* One honest connection, then those that lie. */
struct connection {
	uint32_t number;
	bool granted;
	bool over; /* CLOSE is under way: nothing may be said of it */
	uint8_t token[CONTROL_GRANT_BYTES];
};

static struct connection connections[CONNECTIONS];
static uint32_t last_number;
static unsigned long sent;

static void
ask_with(enum control_type type, const void *payload, int fd)
{
	struct pollfd room = { .fd = CONTROL_FD, .events = POLLOUT };
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	while ((err = seqpacket_send(
		    CONTROL_FD, b.data, b.len, &fd, fd >= 0)) == -EAGAIN)
		poll(&room, 1, 1000);
	if (err < 0) {
		rogue_say("ended by a message that is permitted: %s",
		    control_name(type));
		exit(1);
	}
	sent++;
	buf_clear(&b);
}

static void
ask(enum control_type type, const void *payload)
{
	ask_with(type, payload, -1);
}

/* The answer of that type. What comes before it is dropped; only a question
 * whether the front-end is alive is answered, as silence would be its end. */
static void
hear(enum control_type type, void *answer, int *fd)
{
	struct pollfd ready = { .fd = CONTROL_FD, .events = POLLIN };
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n;

	for (;;) {
		poll(&ready, 1, -1);
		n = seqpacket_recv(
		    CONTROL_FD, packet, sizeof(packet), fds, &nfds);
		if (n <= 0) {
			rogue_say("no answer %s", control_name(type));
			exit(1);
		}
		if (control_peek(packet, (size_t)n) == type)
			break;
		if (control_peek(packet, (size_t)n) == BROKER_EV_PING)
			ask(BROKER_REQ_ALIVE, NULL);
		while (nfds > 0)
			close(fds[--nfds]);
	}
	if (fd != NULL)
		*fd = nfds > 0 ? fds[--nfds] : -1;
	while (nfds > 0)
		close(fds[--nfds]);
	if (answer != NULL && control_get(packet, (size_t)n, type, answer) < 0)
		exit(1);
}

static void
authenticate(struct connection *c)
{
	struct control_authenticate a = { .conn = ++last_number,
		.kind = (uint8_t)rogue_pick(3),
		.peer = "rogue" };
	struct control_verdict v;

	rogue_fill(a.credential, rogue_pick(100));
	memset(a.credential + 99, 0, 1);
	for (char *at = a.credential; at < a.credential + 99; at++)
		if (*at == '\0')
			*at = 'x';
	ask(BROKER_REQ_AUTHENTICATE, &a);
	hear(BROKER_ANS_AUTHENTICATE, &v, NULL);
	*c = (struct connection){ .number = a.conn,
		.granted = v.verdict == VERDICT_GRANTED };
	memcpy(c->token, v.grant, sizeof(v.grant));
}

/* With one end of a channel; the other one. */
static int
ask_session(enum control_type type, const void *payload)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		pair) < 0)
		exit(1);
	ask_with(type, payload, pair[1]);
	close(pair[1]);
	return pair[0];
}

static int
open_session(const struct connection *c)
{
	struct control_open o = { .conn = c->number };

	memcpy(o.grant, c->token, sizeof(o.grant));
	return ask_session(BROKER_REQ_OPEN, &o);
}

static int
find_session(const struct connection *c, enum control_type type, const char *id)
{
	struct control_resume r = { .conn = c->number };

	memcpy(r.grant, c->token, sizeof(r.grant));
	snprintf(r.session_id, sizeof(r.session_id), "%s", id);
	return ask_session(type, &r);
}

static void
find_no_session(const struct connection *c, enum control_type type)
{
	int back, channel = find_session(c, type, "no such session");

	hear(type + 1, NULL, &back);
	if (back < 0) {
		rogue_say("the channel did not come back");
		exit(1);
	}
	close(back);
	close(channel);
}

static void
close_connection(struct connection *c, bool channel_ended, bool answered)
{
	struct control_close close = { .conn = c->number,
		.channel_ended = channel_ended };

	ask(BROKER_REQ_CLOSE, &close);
	c->over = !answered;
	c->granted = false;
	if (answered)
		hear(BROKER_ANS_CLOSE, NULL, NULL);
}

/* --- the honest session --------------------------------------------------- */

static void
check_honest(unsigned life)
{
	struct connection c = { 0 };
	char id[CONTROL_SESSION_ID_MAX] = "";
	int channel;

	while (!c.granted)
		authenticate(&c);
	if (life > 0 && !rogue_load("honest", id, sizeof(id))) {
		rogue_say("the honest session is not known");
		exit(1);
	}
	channel = life == 0 ? open_session(&c)
			    : find_session(&c, BROKER_REQ_RESUME, id);
	if (!rogue_session_begin(channel, id) ||
	    !rogue_session_check(channel, life))
		exit(1);
	if (life == 0)
		rogue_store("honest", id);
	close(channel);
	close_connection(&c, false, true);
}

/* --- permitted, in any order ---------------------------------------------- */

static void
step(struct connection *c)
{
	if (c->over)
		return;
	if (!c->granted) {
		authenticate(c);
		return;
	}
	switch (rogue_pick(4)) {
	case 0:
		find_no_session(c, BROKER_REQ_RESUME);
		break;
	case 1:
		find_no_session(c, BROKER_REQ_WATCH);
		break;
	default:
		close_connection(c, rogue_pick(2), true);
	}
}

static void
authenticate_again(struct connection *c)
{
	while (!c->granted)
		authenticate(c);
}

/* A channel to that session to which nothing was said yet. */
static int
resume(struct connection *c, const char *id)
{
	authenticate_again(c);
	return find_session(c, BROKER_REQ_RESUME, id);
}

/* A session of its own: flooded, resumed, watched, left in a lie. */
static void
attack_session(unsigned long frames)
{
	struct connection c = { 0 }, other = { 0 };
	char id[CONTROL_SESSION_ID_MAX] = "";
	unsigned long at = 0;
	bool fresh = true;
	int channel, watching;

	authenticate_again(&c);
	authenticate_again(&other);
	channel = open_session(&c);
	if (!rogue_session_begin(channel, id))
		exit(1);
	watching = find_session(&other, BROKER_REQ_WATCH, id);
	rogue_session_attack(watching, frames / 10 + 1);
	close(watching);
	close_connection(&other, false, true);
	close(channel);
	close_connection(&c, false, true);
	channel = resume(&c, id);
	while (at < frames) {
		unsigned long n = frames - at < 1000 ? frames - at : 1000;
		bool going = rogue_pick(2) ? rogue_session_attack(channel, n)
					   : rogue_session_attack_directly(
						 channel, fresh, n);

		at += n;
		fresh = !going;
		if (going)
			continue;
		close(channel);
		/* The runner hung up, and said why before. */
		close_connection(&c, true, true);
		channel = resume(&c, id);
	}
	/* Half of them say that the runner hung up, which it did not. */
	if (rogue_pick(2))
		close_connection(&c, true, false);
	sent += frames;
}

/* --- the end -------------------------------------------------------------- */

static void
tell(enum control_type type, const void *payload, size_t extra, size_t nfds)
{
	struct buf b;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, type, payload);
	while (extra-- > 0)
		buf_put_u8(&b, 0);
	rogue_send(CONTROL_FD, b.data, b.len, nfds);
	buf_clear(&b);
}

/* One message that is good by its form, and not permitted now. */
static void
violate(void)
{
	struct control_ready ready = { true, true, true, true };
	struct control_authenticate a = { .conn = ++last_number };
	struct control_resume r = { .conn = last_number };
	struct control_open o = { .conn = last_number };
	struct control_close c = { .conn = last_number };

	switch (rogue_pick(10)) {
	case 0:
		tell(BROKER_REQ_READY, &ready, 0, 0);
		break;
	case 1:
		a.listener = 1 + rogue_pick(100);
		tell(BROKER_REQ_AUTHENTICATE, &a, 0, 0);
		break;
	case 2:
		tell(BROKER_REQ_AUTHENTICATE, &a, 0, 1 + rogue_pick(253));
		break;
	case 3:
		tell(BROKER_REQ_OPEN, &o, 0, rogue_pick(2));
		break;
	case 4:
		tell(rogue_pick(2) ? BROKER_REQ_RESUME : BROKER_REQ_WATCH, &r,
		    0, rogue_pick(2));
		break;
	case 5:
		tell(BROKER_REQ_CLOSE, &c, 0, 0);
		break;
	case 6:
		tell(BROKER_REQ_DONE, NULL, 0, 0);
		break;
	case 7:
		tell(BROKER_REQ_CLOSE, &c, 1 + rogue_pick(100), 0);
		break;
	default:
		while (!rogue_send_anything(CONTROL_FD))
			continue;
	}
}

/* What is sent behind it must change nothing. */
static void
end(unsigned long flood)
{
	struct pollfd ready = { .fd = CONTROL_FD, .events = POLLIN };

	violate();
	for (sent++; flood > 0 && rogue_send_anything(CONTROL_FD); flood--)
		sent++;
	poll(&ready, 1, -1); /* killed meanwhile */
	for (;;)
		pause();
}

int
main(void)
{
	struct control_ready ready = { true, true, true, true };
	struct rogue_settings settings;
	unsigned life = rogue_begin(&settings);
	struct control_configure configure;

	hear(BROKER_EV_CONFIGURE, &configure, NULL);
	hear(BROKER_EV_LISTENER, NULL, NULL);
	ask(BROKER_REQ_READY, &ready);
	check_honest(life);
	if (life == settings.lives) {
		rogue_say("done");
		hear(BROKER_EV_STOP, NULL, NULL);
		return 0;
	}
	for (unsigned long i = 0; i < settings.messages; i++)
		step(&connections[rogue_pick(CONNECTIONS)]);
	if (life % SESSION_EVERY == 0)
		attack_session(settings.messages * SESSION_EVERY);
	rogue_say("life %u: %lu messages", life, sent);
	end(settings.messages);
}
