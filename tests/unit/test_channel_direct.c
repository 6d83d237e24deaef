/* SPDX-License-Identifier: ISC */
/*
 * channel, of a client that was handed over: whatever is composed, passed on
 * and pinged in one turn of the loop, and however little the client takes at
 * once, it sees whole frames of the shortest form in their order.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "channel_direct.h"
#include "control.h"
#include "frame.h"
#include "rights.h"
#include "util.h"

#define MESSAGE_MAX (1u << 20)
#define SEEN_MAX    1000

static const struct control_session_config terms = { .ping_interval_ms =
							 3600 * 1000 };

struct world {
	struct event_base *base;
	struct channel ch;
	int front_end, client;
	struct websocket_parser parser;
	unsigned messages, drained;
	bool ended;
	int broken, breaks;	/* -errno: that it is, and shall be */
	size_t sizes[SEEN_MAX]; /* of messages that the client saw */
	size_t under_way;
	unsigned count, pongs;
};

static void
on_message(struct channel *ch, char *text, size_t len)
{
	struct world *w = ch->owner;

	w->messages++;
}

static void
on_drained(struct channel *ch)
{
	((struct world *)ch->owner)->drained++;
}

static void
on_ended(struct channel *ch)
{
	((struct world *)ch->owner)->ended = true;
}

static void
on_broken(struct channel *ch, int err)
{
	((struct world *)ch->owner)->broken = err;
	channel_close(ch);
}

static const struct channel_events on = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

static void
turn(struct world *w)
{
	event_base_loop(w->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	channel_flush(&w->ch);
}

static void
hand_over(struct world *w, int client)
{
	uint8_t bytes[] = { 6, 0, 0, 0, 2, 0, 0, 0, '{', '}' };
	struct iovec iov = { bytes, sizeof(bytes) };

	assert_int_equal(
	    rights_send(w->front_end, &iov, 1, client), sizeof(bytes));
	close(client);
	turn(w);
	assert_int_equal(w->messages, 1);
	assert_non_null(w->ch.direct);
}

/* A channel on which nothing was said. */
static int
setup_channel(void **state)
{
	struct world *w = *state = xcalloc(1, sizeof(*w));
	int channel[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
	w->base = event_base_new();
	w->front_end = channel[1];
	w->client = -1;
	channel_open(
	    &w->ch, w->base, channel[0], channel[0], MESSAGE_MAX, &on, w);
	w->ch.hand_over = &terms;
	return 0;
}

static int
setup(void **state)
{
	int client[2], small = 4096;
	struct world *w;

	setup_channel(state);
	w = *state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, client), 0);
	setsockopt(client[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	set_nonblock(client[0]);
	w->client = client[0];
	hand_over(w, client[1]);
	websocket_parser_init_client(&w->parser, MESSAGE_MAX);
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	assert_int_equal(w->broken, w->breaks);
	channel_close(&w->ch);
	event_base_free(w->base);
	close(w->front_end);
	if (w->client >= 0)
		close(w->client);
	free(w);
	return 0;
}

static void
see(struct world *w, const struct websocket_item *item)
{
	if (item->event == WEBSOCKET_EV_PONG) {
		assert_memory_equal(item->payload, "po", item->len);
		w->pongs++;
		return;
	}
	assert_int_equal(item->event, WEBSOCKET_EV_DATA);
	w->under_way += item->len;
	if (!item->last)
		return;
	w->sizes[w->count++] = w->under_way;
	w->under_way = 0;
}

/* The client reads what there is, at most n bytes. */
static void
client_reads(struct world *w, size_t n)
{
	uint8_t bytes[70000], *p = bytes;
	struct websocket_item item;
	ssize_t got = recv(w->client, bytes, n, 0);

	while (got > 0) {
		size_t used =
		    websocket_parse(&w->parser, p, (size_t)got, &item);

		if (item.event != WEBSOCKET_EV_NEED_MORE)
			see(w, &item);
		p += used;
		got -= (ssize_t)used;
	}
}

static void
client_reads_all(struct world *w, size_t step)
{
	while (!channel_drained(&w->ch)) {
		client_reads(w, step);
		turn(w);
	}
	while (recv(w->client, &(char){ 0 }, 1, MSG_PEEK) > 0)
		client_reads(w, step);
}

/* A message of n bytes: a string. */
static void
compose(struct world *w, size_t n)
{
	_cleanup_free_ char *text = xmalloc(n);
	struct json_writer j = channel_begin(&w->ch);

	memset(text, 'x', n);
	json_raw(&j, text, n);
	channel_send(&w->ch);
}

static const size_t lengths[] = { 1, 125, 126, 2, 65535, 65536, 3, 127, 65537,
	200000, 1, 1 };

static void
test_all_lengths_in_one_turn(void **state)
{
	static const size_t steps[] = { 1, 13, 4096, 70000 };
	struct world *w = *state;

	for (size_t s = 0; s < nitems(steps); s++) {
		w->count = 0;
		for (size_t i = 0; i < nitems(lengths); i++)
			compose(w, lengths[i]);
		client_reads_all(w, steps[s]);
		assert_int_equal(w->count, nitems(lengths));
		assert_memory_equal(w->sizes, lengths, sizeof(lengths));
	}
	assert_true(w->drained > 0);
}

static void
test_one_length_in_each_turn(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < nitems(lengths); i++) {
		compose(w, lengths[i]);
		turn(w);
		client_reads_all(w, 70000);
	}
	assert_memory_equal(w->sizes, lengths, sizeof(lengths));
}

static void
test_between_the_pieces_of_a_frame_that_is_passed_on(void **state)
{
	static const size_t expected[] = { 5, 100000, 7, 65536, 9 };
	static uint8_t piece[50000];
	struct world *w = *state;

	memset(piece, 'y', sizeof(piece));
	compose(w, 5);
	channel_relay_begin(&w->ch, 2 * sizeof(piece));
	channel_relay(&w->ch, piece, sizeof(piece));
	compose(w, 7);
	turn(w);
	client_reads(w, 100);
	compose(w, 65536);
	channel_relay(&w->ch, piece, sizeof(piece));
	compose(w, 9);
	client_reads_all(w, 1000);
	assert_int_equal(w->count, nitems(expected));
	assert_memory_equal(w->sizes, expected, sizeof(expected));
}

static void
client_says(struct world *w, enum websocket_opcode opcode, const char *text)
{
	uint8_t bytes[200];
	size_t at = websocket_put_masked_header(
	    bytes, opcode, strlen(text), (const uint8_t[4]){ 0 });

	memcpy(bytes + at, text, strlen(text));
	assert_int_equal(
	    send(w->client, bytes, at + strlen(text), 0), at + strlen(text));
}

static void
test_a_pong_waits_for_the_end_of_a_frame(void **state)
{
	struct world *w = *state;

	compose(w, 300000);
	turn(w);
	for (int i = 0; i < 100; i++)
		client_says(w, WEBSOCKET_PING, "po");
	turn(w);
	client_reads_all(w, 5000);
	assert_int_equal(w->count, 1);
	assert_int_equal(w->sizes[0], 300000);
	assert_int_equal(w->pongs, 1);
	client_says(w, WEBSOCKET_PING, "");
	turn(w);
	client_reads_all(w, 5000);
	assert_int_equal(w->pongs, 2);
}

/* What it does not take is dropped, and nobody waits for ever. */
static void
test_a_client_that_is_gone_is_written_to_no_more(void **state)
{
	struct world *w = *state;

	compose(w, 300000);
	turn(w);
	assert_true(channel_congested(&w->ch));
	shutdown(w->client, SHUT_RDWR);
	compose(w, 10);
	turn(w);
	turn(w);
	assert_true(w->ended && w->drained == 1);
	compose(w, 1000);
	turn(w);
	assert_true(channel_drained(&w->ch) && !channel_congested(&w->ch));
	assert_true(channel_is_open(&w->ch));
}

/* The rest of a frame that is passed on is none of another one. */
static void
test_a_client_that_is_gone_within_a_frame(void **state)
{
	static uint8_t piece[50000];
	struct world *w = *state;

	channel_relay_begin(&w->ch, 3 * sizeof(piece));
	channel_relay(&w->ch, piece, sizeof(piece));
	turn(w);
	shutdown(w->client, SHUT_RDWR);
	channel_relay(&w->ch, piece, sizeof(piece));
	turn(w);
	turn(w);
	assert_true(w->ended);
	assert_int_equal(w->ch.relay_left, sizeof(piece));
	compose(w, 10);
	channel_relay(&w->ch, piece, sizeof(piece));
	assert_int_equal(w->ch.relay_left, 0);
	turn(w);
	assert_true(channel_drained(&w->ch) && !channel_congested(&w->ch));
}

/* --- what is no client -------------------------------------------------- */

/* The front-end sends so much of it, with one end of a pair or that. */
static void
say(struct world *w, const uint8_t *bytes, size_t n, int fd)
{
	struct iovec iov = { (void *)bytes, n };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(
	    rights_send(w->front_end, &iov, 1, fd < 0 ? pair[0] : fd), n);
	close(pair[0]);
	close(pair[1]);
	turn(w);
	w->breaks = -EBADMSG;
}

static void
test_two_for_one_message(void **state)
{
	static const uint8_t bytes[] = { 6, 0, 0, 0, 2, 0, 0, 0, '{', '}' };
	struct world *w = *state;

	say(w, bytes, 5, -1);
	assert_true(channel_is_open(&w->ch));
	/* Nor is the rest of it waited for. */
	say(w, bytes + 5, 1, -1);
	assert_int_equal(w->messages, 0);
}

static void
test_lengths_that_are_not_there(void **state)
{
	static const uint8_t bytes[][9] = { { 4 }, { 5, 0, 0, 0, 0 },
		{ 5, 0, 0, 0, 2 }, { 5, 0, 0, 0, 255, 255, 255, 255 } };

	for (size_t i = 0; i < nitems(bytes); i++) {
		if (i > 0)
			setup_channel(state);
		say(*state, bytes[i], 4 + bytes[i][0], -1);
		if (i + 1 < nitems(bytes))
			teardown(state);
	}
}

static void
test_descriptors_that_are_no_connection(void **state)
{
	static const uint8_t bytes[] = { 6, 0, 0, 0, 2, 0, 0, 0, '{', '}' };
	int kinds[] = { open("/dev/null", O_RDWR),
		socket(AF_UNIX, SOCK_DGRAM, 0),
		socket(AF_UNIX, SOCK_STREAM, 0) };

	assert_int_equal(
	    bind(kinds[2], &(struct sockaddr){ .sa_family = AF_UNIX },
		sizeof(sa_family_t)),
	    0);
	assert_int_equal(listen(kinds[2], 1), 0);
	for (size_t i = 0; i < nitems(kinds); i++) {
		if (i > 0)
			setup_channel(state);
		say(*state, bytes, sizeof(bytes), kinds[i]);
		close(kinds[i]);
		if (i + 1 < nitems(kinds))
			teardown(state);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    test_all_lengths_in_one_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_one_length_in_each_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_between_the_pieces_of_a_frame_that_is_passed_on, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    test_a_pong_waits_for_the_end_of_a_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_a_client_that_is_gone_is_written_to_no_more, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    test_a_client_that_is_gone_within_a_frame, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    test_two_for_one_message, setup_channel, teardown),
		cmocka_unit_test_setup_teardown(
		    test_lengths_that_are_not_there, setup_channel, teardown),
		cmocka_unit_test_setup_teardown(
		    test_descriptors_that_are_no_connection, setup_channel,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
