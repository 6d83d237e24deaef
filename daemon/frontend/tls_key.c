/*
 * Asks the key process for a signature.
 */
#include "tls_key.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "seqpacket.h"
#include "util.h"

/* A signature takes about a millisecond; longer than this, and the other
 * clients should not wait. */
#define DEADLINE_MS 2000

static int newest = -1, previous = -1;
static uint32_t epoch, last_serial;

void
tls_key_retire(void)
{
	if (previous >= 0)
		close(previous);
	previous = -1;
}

void
tls_key_set_channel(int fd)
{
	tls_key_retire();
	previous = newest;
	newest = fd;
	epoch++;
}

uint32_t
tls_key_epoch(void)
{
	return epoch;
}

static int
channel_of(const struct tls_key *key)
{
	if (key->epoch == epoch)
		return newest;
	return key->epoch + 1 == epoch ? previous : -1;
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
ask(int channel, const struct control_sign *request, int64_t deadline)
{
	struct buf b;
	int err;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, KEYS_SIGN, request);
	while ((err = seqpacket_send(channel, b.data, b.len, NULL, 0)) ==
		   -EAGAIN &&
	       (err = wait_until(channel, deadline, POLLOUT)) == 0)
		continue;
	buf_clear(&b);
	return err;
}

/* An answer to an earlier question that was given up is skipped. */
static int
hear(int channel, struct control_signed *answer, uint32_t serial,
    int64_t deadline)
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
		if (control_get(packet, (size_t)n, KEYS_SIGNED, answer) < 0 ||
		    answer->len > sizeof(answer->signature))
			return -EBADMSG;
		if (answer->serial == serial)
			return 0;
	}
}

int
tls_key_sign(const struct tls_key *key, uint32_t scheme, const void *tbs,
    size_t len, uint8_t signature[CONTROL_SIGNATURE_MAX])
{
	struct control_sign request = {
		.serial = ++last_serial, .key = key->number, .scheme = scheme
	};
	struct control_signed answer;
	int64_t deadline = now_ms() + DEADLINE_MS;
	int err, channel = channel_of(key);

	if (len > sizeof(request.tbs))
		return -EMSGSIZE;
	memcpy(request.tbs, tbs, len);
	request.len = (uint32_t)len;
	err = channel < 0 ? -EPIPE : ask(channel, &request, deadline);
	if (err == 0)
		err = hear(channel, &answer, request.serial, deadline);
	if (err == 0 && answer.len == 0)
		err = -EPERM;
	if (err < 0) {
		log_error(err, "key process");
		return err;
	}
	memcpy(signature, answer.signature, answer.len);
	return (int)answer.len;
}
