/* SPDX-License-Identifier: ISC */
/*
 * Asks helpers and waits for their answers.
 */
#include "tls_helper.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "frontend.h"
#include "log.h"
#include "rights.h"
#include "seqpacket.h"
#include "util.h"

/* An answer takes about a millisecond. Other clients should not wait longer
 * than this. */
#define DEADLINE_MS 2000

static struct helper_channel {
	const char *name, *missing;
	int newest, previous;
} channels[TLS_HELPERS] = {
	[TLS_HELPER_KEYS] = { "key process",
	    "the key process does not answer\n", -1, -1 },
	[TLS_HELPER_CERTIFICATES] = { "certificate process",
	    "the certificate process does not answer\n", -1, -1 },
};
static uint32_t epoch, last_serial;
static void (*hangs)(enum tls_helper who);

void
helper_init(void (*tell)(enum tls_helper who))
{
	hangs = tell;
}

void
helper_retire(void)
{
	for (int i = 0; i < TLS_HELPERS; i++) {
		if (channels[i].previous >= 0)
			close(channels[i].previous);
		channels[i].previous = -1;
	}
}

void
helper_set_channels(const int fds[TLS_HELPERS])
{
	helper_retire();
	for (int i = 0; i < TLS_HELPERS; i++) {
		channels[i].previous = channels[i].newest;
		channels[i].newest = fds[i];
		if (fds[i] >= 0)
			rights_refuse(fds[i]);
	}
	epoch++;
}

uint32_t
helper_epoch(void)
{
	return epoch;
}

static int
channel_of(enum tls_helper who, uint32_t of_epoch)
{
	if (of_epoch == epoch)
		return channels[who].newest;
	return of_epoch + 1 == epoch ? channels[who].previous : -1;
}

static int
wait_until(int channel, int64_t deadline, short events)
{
	struct pollfd p = { .fd = channel, .events = events };
	int64_t left = deadline - now_ms();
	int n;

	if (left <= 0)
		return -ETIMEDOUT;
	n = poll(&p, 1, (int)left);
	if (n < 0 && errno != EINTR)
		return -errno;
	return n == 0 ? -ETIMEDOUT : 0;
}

static int
ask_channel(
    int channel, enum control_type ask, const void *request, int64_t deadline)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, ask, request);
	while ((err = seqpacket_send(channel, b.data, b.len, NULL, 0)) ==
		   -EAGAIN &&
	       (err = wait_until(channel, deadline, POLLOUT)) == 0)
		continue;
	buf_clear(&b);
	return err;
}

/* Reads the answer. Answers to earlier requests that timed out are skipped. */
static int
hear(int channel, enum control_type type, void *answer, int64_t deadline)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX], err;
	size_t nfds;
	ssize_t n;

	for (;;) {
		n = seqpacket_recv(channel, packet, sizeof(packet), fds, &nfds);
		while (nfds > 0)
			close(fds[--nfds]);
		if (n == 0)
			return -EPIPE;
		if (n < 0 && n != -EAGAIN)
			return (int)n;
		if (n == -EAGAIN) {
			err = wait_until(channel, deadline, POLLIN);
			if (err < 0)
				return err;
			continue;
		}
		if (control_get(packet, (size_t)n, type, answer) < 0)
			return -EBADMSG;
		if (*(const uint32_t *)answer == last_serial)
			return 0;
	}
}

/* Closes the channel of a helper that does not answer, so that nobody waits for
 * it again. The broker ends it and starts another. */
static void
give_up(enum tls_helper who, uint32_t of_epoch)
{
	int *channel =
	    of_epoch == epoch ? &channels[who].newest : &channels[who].previous;

	close(*channel);
	*channel = -1;
	if (of_epoch == epoch)
		hangs(who);
}

int
helper_ask(enum tls_helper who, uint32_t of_epoch, enum control_type ask,
    void *request, enum control_type type, void *answer)
{
	int64_t deadline = now_ms() + DEADLINE_MS;
	int err, channel = channel_of(who, of_epoch);

	*(uint32_t *)request = ++last_serial;
	err =
	    channel < 0 ? -EPIPE : ask_channel(channel, ask, request, deadline);
	if (err == 0)
		err = hear(channel, type, answer, deadline);
	if (err < 0)
		log_error(err, "%s", channels[who].name);
	if (err == -ETIMEDOUT)
		give_up(who, of_epoch);
	return err;
}

void
helper_ask_all(void)
{
	for (int i = 0; i < TLS_HELPERS; i++) {
		struct control_alive ask, answer;

		if (channels[i].newest >= 0)
			helper_ask(
			    i, epoch, KEYS_PING, &ask, KEYS_ALIVE, &answer);
	}
}

/* Returns true if the other end is closed: the helper has died and will be
 * replaced. */
static bool
has_ended(int channel)
{
	struct pollfd p = { .fd = channel };

	return poll(&p, 1, 0) > 0;
}

const char *
helper_reason(void)
{
	for (int i = 0; i < TLS_HELPERS; i++)
		if (channels[i].newest >= 0 && has_ended(channels[i].newest))
			return channels[i].missing;
	return NULL;
}
