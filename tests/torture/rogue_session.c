/* SPDX-License-Identifier: ISC */
/*
 * Frames for a runner: of no meaning, good ones in any order, and those of an
 * honest client.
 */
#include "rogue_session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frame.h"
#include "rights.h"
#include "rogue.h"
#include "util.h"
#include "websocket.h"

#define ANSWER_MS 10000

/* Good requests, in whatever order: none changes what is not its own. */
static const char *const messages[] = {
	"{\"id\":1,\"method\":\"initialize\",\"params\":"
	"{\"clientName\":\"x\"}}",
	"{\"method\":\"initialized\"}",
	"{\"id\":2,\"method\":\"environment/info\"}",
	"{\"id\":3,\"method\":\"environment/status\"}",
	"{\"id\":4,\"method\":\"process/list\"}",
	"{\"id\":5,\"method\":\"process/start\",\"params\":{\"processId\":"
	"\"p\",\"argv\":[\"/bin/cat\"],\"cwd\":\"file:///\",\"env\":{},"
	"\"tty\":false,\"pipeStdin\":true}}",
	"{\"id\":6,\"method\":\"process/write\",\"params\":{\"processId\":"
	"\"p\",\"chunk\":\"eAo=\",\"writeId\":\"w\"}}",
	"{\"id\":7,\"method\":\"process/read\",\"params\":{\"processId\":"
	"\"p\"}}",
	"{\"id\":8,\"method\":\"process/terminate\",\"params\":"
	"{\"processId\":\"p\"}}",
	"{\"id\":9,\"method\":\"process/resize\",\"params\":{\"processId\":"
	"\"p\",\"rows\":1,\"cols\":1}}",
	"{\"id\":10,\"method\":\"process/signal\",\"params\":{\"processId\":"
	"\"p\",\"signal\":\"interrupt\"}}",
	"{\"id\":11,\"method\":\"process/wait\",\"params\":{\"processId\":"
	"\"p\",\"timeoutMs\":0}}",
	"{\"id\":12,\"method\":\"process/snapshot\",\"params\":"
	"{\"processId\":\"p\"}}",
	"{\"id\":13,\"method\":\"fs/getMetadata\",\"params\":{\"path\":"
	"\"file:///nonexistent\"}}",
	"{\"id\":14,\"method\":\"fs/readDirectory\",\"params\":{\"path\":"
	"\"file:///nonexistent\"}}",
	"{\"id\":15,\"method\":\"fs/close\",\"params\":{\"handleId\":"
	"\"h\"}}",
	"{\"id\":16,\"method\":\"nope\",\"params\":[[[[]]]]}",
};

/* Those that end the connection come rarely, or little else would be seen. */
static const char *const endings[] = {
	"{\"method\":\"nope\"}",
	"{\"id\":1,\"result\":{}}",
	"{\"error\":{\"code\":1,\"message\":\"x\"},\"id\":1}",
};

/* Takes what has come. False: end of file. */
static bool
drop_answers(int channel)
{
	static uint8_t space[65536];
	ssize_t n;

	while ((n = recv(channel, space, sizeof(space), MSG_DONTWAIT)) > 0)
		continue;
	return n < 0 && errno == EAGAIN;
}

/* All of it, reading meanwhile: else both sides would wait for each other. */
static bool
send_all(int channel, const void *p, size_t n)
{
	struct pollfd ready = { .fd = channel, .events = POLLIN | POLLOUT };
	const uint8_t *at = p;

	while (n > 0) {
		ssize_t sent =
		    send(channel, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno != EAGAIN)
			return false;
		if (sent > 0) {
			at += sent;
			n -= (size_t)sent;
			continue;
		}
		if (!drop_answers(channel) || poll(&ready, 1, ANSWER_MS) <= 0)
			return false;
	}
	return true;
}

static bool
send_frame(int channel, const void *p, size_t n)
{
	uint8_t frame[4096];

	if (n + FRAME_HEADER_BYTES > sizeof(frame))
		return false;
	frame_put_length(frame, (uint32_t)n);
	memcpy(frame + FRAME_HEADER_BYTES, p, n);
	return send_all(channel, frame, n + FRAME_HEADER_BYTES);
}

/* A good message, some bytes of it changed; or none at all. */
static bool
send_arbitrary(int channel)
{
	const char *text = messages[rogue_pick(nitems(messages))];
	size_t n = strlen(text);
	uint8_t bytes[512];

	if (rogue_pick(2)) {
		n = 1 + rogue_pick(200);
		rogue_fill(bytes, n);
	} else {
		memcpy(bytes, text, n);
		/* Behind the method's name, which decides what is done. */
		bytes[n / 2 + rogue_pick((uint32_t)(n / 2))] ^=
		    (uint8_t)(1 + rogue_pick(255));
	}
	return send_frame(channel, bytes, n);
}

bool
rogue_session_attack(int channel, unsigned long count)
{
	uint8_t length[FRAME_HEADER_BYTES];
	const char *text;

	for (; count > 0; count--) {
		uint32_t kind = rogue_pick(4000);

		text = messages[rogue_pick(nitems(messages))];
		if (kind == 0) {
			/* A length that no frame has. */
			frame_put_length(length, rogue_pick(2) ? 0 : ~0u);
			if (!send_all(channel, length, sizeof(length)))
				return false;
			continue;
		}
		if (kind < 4)
			text = endings[rogue_pick(nitems(endings))];
		if (kind % 2 ? !send_frame(channel, text, strlen(text))
			     : !send_arbitrary(channel))
			return false;
	}
	return drop_answers(channel);
}

/* --- a client that is handed over --------------------------------------- */

/* Something or nothing as the client, lengths of no meaning. */
static bool
hand_over_anything(int channel)
{
	uint8_t bytes[100];
	struct iovec iov = { bytes, 1 + rogue_pick(sizeof(bytes)) };
	int pair[2];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return false;
	rogue_fill(bytes, sizeof(bytes));
	frame_put_length(bytes, rogue_pick(sizeof(bytes)));
	frame_put_length(bytes + FRAME_HEADER_BYTES,
	    rogue_pick(4) ? rogue_pick(sizeof(bytes)) : ~0u);
	n = rights_send(
	    channel, &iov, 1, rogue_pick(2) ? pair[1] : STDERR_FILENO);
	close(pair[0]);
	close(pair[1]);
	return n > 0;
}

/* A good one. The client's end, or -1. */
static int
hand_over(int channel)
{
	const char *text = messages[0];
	uint8_t bytes[200];
	size_t n = strlen(text);
	struct iovec iov = { bytes, n + 2 * FRAME_HEADER_BYTES };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	frame_put_length(bytes, (uint32_t)n + FRAME_HEADER_BYTES);
	frame_put_length(bytes + FRAME_HEADER_BYTES, (uint32_t)n);
	memcpy(bytes + 2 * FRAME_HEADER_BYTES, text, n);
	if (rights_send(channel, &iov, 1, pair[1]) != (ssize_t)iov.iov_len) {
		close(pair[0]);
		pair[0] = -1;
	}
	close(pair[1]);
	return pair[0];
}

/* A client's frame: mostly a good one, seldom one that ends it. */
static bool
send_client_frame(int client)
{
	static const uint8_t opcodes[] = { 1, 1, 1, 1, 1, 1, 2, 0, 8, 9, 10 };
	const char *text = messages[rogue_pick(nitems(messages))];
	uint8_t bytes[WEBSOCKET_MASKED_MAX + 512], mask[4];
	size_t n = strlen(text), at;

	rogue_fill(mask, sizeof(mask));
	at = websocket_put_masked_header(bytes, WEBSOCKET_TEXT, n, mask);
	memcpy(bytes + at, text, n);
	if (rogue_pick(200) == 0)
		bytes[0] = opcodes[rogue_pick(nitems(opcodes))] |
			   (uint8_t)(rogue_pick(16) << 4);
	if (rogue_pick(20) == 0)
		bytes[at + rogue_pick((uint32_t)n)] ^= 1;
	websocket_mask(bytes + at, n, mask, 0);
	return send_all(client, bytes, at + n);
}

/* The runner hangs up, after it has told the broker. */
static void
wait_end(int channel)
{
	struct pollfd ready = { .fd = channel, .events = POLLIN };

	while (drop_answers(channel)) {
		if (poll(&ready, 1, ANSWER_MS) > 0)
			continue;
		rogue_say("the runner did not hang up");
		exit(1);
	}
}

bool
rogue_session_attack_directly(int channel, bool fresh, unsigned long count)
{
	int client = -1;
	bool going;

	/* It may be half a message: a runner that waits for more would not see
	 * a client that came meanwhile. */
	if (rogue_pick(4) == 0)
		return hand_over_anything(channel) &&
		       rogue_session_attack(channel, count);
	client = hand_over(channel);
	going = client >= 0;
	while (count-- > 0 && going)
		going = send_client_frame(client) && drop_answers(client) &&
			drop_answers(channel);
	if (client >= 0)
		close(client);
	if (!fresh)
		return drop_answers(channel);
	wait_end(channel);
	return false;
}

/* --- an honest client --------------------------------------------------- */

/* Waits until the runner has said this; what comes behind it, or NULL. */
static const char *
wait_for(int channel, const char *text)
{
	struct pollfd ready = { .fd = channel, .events = POLLIN };
	static char said[65536];
	size_t len = 0;
	ssize_t n;
	char *at;

	while (poll(&ready, 1, ANSWER_MS) > 0) {
		n = recv(channel, said + len, sizeof(said) - 1 - len, 0);
		if (n <= 0)
			break;
		len += (size_t)n;
		said[len] = '\0';
		at = memmem(said, len, text, strlen(text));
		if (at != NULL)
			return at + strlen(text);
	}
	rogue_say("the honest session did not say %s, but: %.*s", text,
	    len > 150 ? 150 : (int)len, said);
	return NULL;
}

static bool
say(int channel, const char *text)
{
	return send_frame(channel, text, strlen(text));
}

bool
rogue_session_begin(int channel, char id[CONTROL_SESSION_ID_MAX])
{
	bool resume = id[0] != '\0';
	const char *at;
	char text[400];

	snprintf(text, sizeof(text),
	    "{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientName\":"
	    "\"h\"%s%s%s}}",
	    resume ? ",\"resumeSessionId\":\"" : "", id, resume ? "\"" : "");
	say(channel, text);
	at = wait_for(channel, "\"sessionId\":\"");
	if (at == NULL)
		return false;
	snprintf(id, CONTROL_SESSION_ID_MAX, "%.36s", at);
	return true;
}

bool
rogue_session_check(int channel, unsigned number)
{
	char text[400], seq[40];

	say(channel, "{\"method\":\"initialized\"}");
	if (number == 0)
		say(channel,
		    "{\"id\":2,\"method\":\"process/start\",\"params\":"
		    "{\"processId\":\"h\",\"argv\":[\"/bin/cat\"],\"cwd\":"
		    "\"file:///\",\"env\":{},\"tty\":false,\"pipeStdin\":"
		    "true}}");
	snprintf(text, sizeof(text),
	    "{\"id\":3,\"method\":\"process/write\",\"params\":{\"processId\":"
	    "\"h\",\"chunk\":\"dGljawo=\",\"writeId\":\"w%u\"}}",
	    number);
	say(channel, text);
	/* Its sequence numbers say that nothing came in between. */
	snprintf(seq, sizeof(seq), "\"seq\":%u,", number + 1);
	return wait_for(channel, seq) != NULL;
}
