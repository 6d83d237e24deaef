/* SPDX-License-Identifier: ISC */
/*
 * client: whatever a server answers, the client neither crashes nor hands an
 * event out twice. Each line is a message; the first bytes also are the answer
 * to an upgrade.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "client.h"
#include "upgrade.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct seen {
	unsigned int exits, ends;
};

static void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	const struct seen *s = arg;

	assert(s->ends == 0 && len > 0 && stream <= EXECD_TERMINAL);
}

static void
on_exited(void *arg, const struct execd_exit *how)
{
	struct seen *s = arg;

	assert(s->ends == 0 && ++s->exits == 1);
}

static void
on_closed(void *arg)
{
	struct seen *s = arg;

	assert(++s->ends == 1);
}

static void
on_failed(void *arg, int code, const char *message)
{
	struct seen *s = arg;

	assert(++s->ends == 1 && message != NULL);
}

static void
on_answer(void *arg, const struct execd_answer *a)
{
	assert((a->code == 0) == (a->result != NULL));
	assert(a->code == 0 || a->message != NULL);
}

static void
feed(struct execd_client *c, const char *text, size_t len)
{
	struct rpc_message m;

	if (rpc_parse(&m, text, len) == 0 && c->link >= LINK_INITIALIZE) {
		if (m.kind == RPC_KIND_RESPONSE)
			calls_answer(c, &m, text, len);
		else if (m.kind == RPC_KIND_NOTIFICATION)
			process_notification(c, &m);
	}
	rpc_message_clear(&m);
}

static void
feed_lines(struct execd_client *c, const char *text, size_t len)
{
	while (len > 0) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) : len;

		feed(c, text, n);
		if (end == NULL)
			break;
		text += n + 1;
		len -= n + 1;
	}
}

static void
try_upgrade(const char *text, size_t len)
{
	const char *why = NULL;
	int status;
	ssize_t n = upgrade_answer(text, len, "accept", &status, &why);

	assert(n <= (ssize_t)len);
	assert(n >= 0 || why != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct execd_process_events events = { .output = on_output,
		.exited = on_exited,
		.closed = on_closed,
		.failed = on_failed };
	struct execd_options o = { .url = "unix:/nonexistent" };
	struct seen a = { 0 }, b = { 0 };
	struct execd_client *c = execd_client_new(&o);

	try_upgrade((const char *)data, len);
	c->state = EXECD_CONNECTING;
	c->link = len % 2 == 0 ? LINK_INITIALIZE : LINK_READY;
	execd_process_attach(c, "a", &events, &a);
	execd_process_attach(c, "b", &events, &b);
	execd_client_request(c, "x", NULL, 0, 0, on_answer, NULL);
	feed_lines(c, (const char *)data, len);
	if (c->state != EXECD_OVER)
		client_over(c, EXECD_FAILURE_LOST);
	assert(a.ends == 1 && b.ends == 1);
	c->link = LINK_NONE;
	execd_client_free(c);
	return 0;
}
