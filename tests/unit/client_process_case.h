/* SPDX-License-Identifier: ISC */
/*
 * For the tests of a client's processes: what is handed out becomes a text,
 * and the server is this file.
 */
#pragma once

#include "client.h"

struct fixture {
	struct execd_client *client;
	struct execd_process *process;
	struct buf seen; /* "out:a exit:3 closed " */
	bool free_at_exit;
};

static inline void
on_started(void *arg, const char *type)
{
	struct fixture *f = arg;

	buf_printf(&f->seen, "started:%s ", type);
}

static inline void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	static const char *const names[] = { "out", "err", "tty" };
	struct fixture *f = arg;

	buf_printf(
	    &f->seen, "%s:%.*s ", names[stream], (int)len, (const char *)data);
}

static inline void
on_gap(void *arg, uint64_t events, uint64_t bytes)
{
	struct fixture *f = arg;

	buf_printf(&f->seen, "gap:%llu/%llu ", (unsigned long long)events,
	    (unsigned long long)bytes);
}

static inline void
on_exited(void *arg, const struct execd_exit *how)
{
	struct fixture *f = arg;

	buf_printf(
	    &f->seen, "exit:%d%s ", how->code, how->sandbox_denied ? "!" : "");
	if (f->free_at_exit) {
		execd_process_free(f->process);
		f->process = NULL;
	}
}

static inline void
on_closed(void *arg)
{
	struct fixture *f = arg;

	buf_puts(&f->seen, "closed ");
}

static inline void
on_failed(void *arg, int code, const char *message)
{
	struct fixture *f = arg;

	buf_printf(&f->seen, "failed:%d ", code);
}

static const struct execd_process_events events = { .started = on_started,
	.output = on_output,
	.gap = on_gap,
	.exited = on_exited,
	.closed = on_closed,
	.failed = on_failed };

/* --- The server --------------------------------------------------------- */

static inline void
say(struct fixture *f, const char *text)
{
	struct rpc_message m;

	assert_int_equal(rpc_parse(&m, text, strlen(text)), 0);
	if (m.kind == RPC_KIND_RESPONSE)
		calls_answer(f->client, &m, text, strlen(text));
	else
		assert_true(process_notification(f->client, &m));
	rpc_message_clear(&m);
}

/* One event of process `p`: chunk is base64 text, or NULL for method. */
static inline void
event(struct fixture *f, const char *method, unsigned int seq, const char *more)
{
	char text[512];

	snprintf(text, sizeof(text),
	    "{\"method\":\"process/%s\",\"params\":{\"processId\":\"p\","
	    "\"seq\":%u%s}}",
	    method, seq, more);
	say(f, text);
}

#define OUT(chunk) ",\"stream\":\"stdout\",\"chunk\":\"" chunk "\""
#define A	   OUT("YQ==")
#define B	   OUT("Yg==")
#define C	   OUT("Yw==")
#define EXIT(code) ",\"exitCode\":" #code ",\"sandboxDenied\":false"

/* The newest request; NULL: there is none. */
static inline const char *
asked(struct fixture *f)
{
	struct call *call = TAILQ_LAST(&f->client->calls, call_list);

	if (call == NULL)
		return NULL;
	buf_put_u8(&call->message, '\0');
	call->message.len--;
	return (const char *)call->message.data;
}

/* Answers the oldest request. */
static inline void
answer(struct fixture *f, const char *result)
{
	struct call *call = TAILQ_FIRST(&f->client->calls);
	char text[1024];

	assert_non_null(call);
	snprintf(text, sizeof(text), "{\"id\":%llu,%s}",
	    (unsigned long long)call->id, result);
	say(f, text);
}

#define READ(chunks, next, end)                                                \
	"\"result\":{\"chunks\":[" chunks "],\"nextSeq\":" #next "," end "}"
#define CHUNK(seq, chunk)                                                      \
	"{\"seq\":" #seq ",\"stream\":\"stdout\",\"chunk\":\"" chunk "\"}"
#define RUNS   "\"exited\":false,\"exitCode\":null,\"closed\":false"
#define EXITED "\"exited\":true,\"exitCode\":3,\"closed\":false"
#define CLOSED "\"exited\":true,\"exitCode\":3,\"closed\":true"

static inline void
assert_seen(struct fixture *f, const char *expected)
{
	buf_put_u8(&f->seen, '\0');
	assert_string_equal((char *)f->seen.data, expected);
	f->seen.len = 0;
}

/* A client that believes it is connected. */
static inline int
setup(void **state)
{
	struct execd_options o = { .url = "unix:/nonexistent" };
	struct fixture *f = xcalloc(1, sizeof(*f));

	buf_init(&f->seen, 65536);
	f->client = execd_client_new(&o);
	f->client->link = LINK_READY;
	f->client->state = EXECD_READY;
	*state = f;
	return 0;
}

/* A process `p` whose retained output was read: there was none. */
static inline int
setup_attached(void **state)
{
	struct fixture *f;

	setup(state);
	f = *state;
	f->process = execd_process_attach(f->client, "p", &events, f);
	assert_non_null(strstr(asked(f), "\"afterSeq\":0"));
	answer(f, READ("", 1, RUNS));
	assert_seen(f, "");
	return 0;
}

static inline int
teardown(void **state)
{
	struct fixture *f = *state;

	f->client->link = LINK_NONE;
	execd_client_free(f->client);
	buf_clear(&f->seen);
	free(f);
	return 0;
}

#define ATTACHED(test)                                                         \
	cmocka_unit_test_setup_teardown(test, setup_attached, teardown)
#define UNSTARTED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
