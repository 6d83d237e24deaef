/*
 * process: whatever order events come in, live, missing or again, they are
 * handed out once and in the order of their numbers. The server is this file.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "process.h"

struct fixture {
	struct execd_client *client;
	struct execd_process *process;
	struct buf seen; /* "out:a exit:3 closed " */
	bool free_at_exit;
};

static void
on_started(void *arg, const char *type)
{
	struct fixture *f = arg;

	buf_printf(&f->seen, "started:%s ", type);
}

static void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	static const char *const names[] = { "out", "err", "tty" };
	struct fixture *f = arg;

	buf_printf(
	    &f->seen, "%s:%.*s ", names[stream], (int)len, (const char *)data);
}

static void
on_gap(void *arg, uint64_t events, uint64_t bytes)
{
	struct fixture *f = arg;

	buf_printf(&f->seen, "gap:%llu/%llu ", (unsigned long long)events,
	    (unsigned long long)bytes);
}

static void
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

static void
on_closed(void *arg)
{
	struct fixture *f = arg;

	buf_puts(&f->seen, "closed ");
}

static void
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

static void
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
static void
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
static const char *
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
static void
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

static void
assert_seen(struct fixture *f, const char *expected)
{
	buf_put_u8(&f->seen, '\0');
	assert_string_equal((char *)f->seen.data, expected);
	f->seen.len = 0;
}

/* A client that believes it is connected. */
static int
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
static int
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

static int
teardown(void **state)
{
	struct fixture *f = *state;

	f->client->link = LINK_NONE;
	execd_client_free(f->client);
	buf_clear(&f->seen);
	free(f);
	return 0;
}

/* --- Tests -------------------------------------------------------------- */

static void
test_in_order(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 2, ",\"stream\":\"stderr\",\"chunk\":\"Yg==\"");
	event(f, "output", 3, ",\"stream\":\"pty\",\"chunk\":\"Yw==\"");
	event(f, "exited", 4, ",\"exitCode\":9,\"sandboxDenied\":true");
	event(f, "output", 5, A);
	event(f, "closed", 6, "");
	assert_seen(f, "out:a err:b tty:c exit:9! out:a closed ");
	assert_null(asked(f));
	/* Nothing counts behind the last. */
	event(f, "output", 7, A);
	assert_seen(f, "");
}

static void
test_again(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 1, A);
	event(f, "output", 2, B);
	event(f, "output", 1, A);
	event(f, "exited", 3, EXIT(0));
	event(f, "exited", 3, EXIT(1));
	assert_seen(f, "out:a out:b exit:0 ");
}

static void
test_missing_is_read(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 3, C);
	assert_non_null(strstr(asked(f), "\"afterSeq\":1"));
	/* It waits, and so does what comes behind it. */
	event(f, "exited", 4, EXIT(5));
	assert_seen(f, "out:a ");
	answer(f, READ(CHUNK(2, "Yg=="), 3, RUNS));
	assert_seen(f, "out:b out:c exit:5 ");
}

static void
test_read_goes_beyond_what_is_held(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 2, B);
	answer(
	    f, READ(CHUNK(1, "YQ==") "," CHUNK(2, "Yg==") "," CHUNK(3, "Yw=="),
		   6, CLOSED));
	assert_seen(f, "out:a out:b out:c exit:3 closed ");
}

static void
test_lost_is_counted(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "output", 9, A);
	/* 2 to 7 are gone; 6 was the exit. */
	answer(f, READ(CHUNK(8, "Yg=="), 9, EXITED));
	assert_seen(f, "out:a gap:5/0 out:b exit:3 out:a ");
}

static void
test_lost_bytes_and_their_place(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	event(f, "closed", 9, "");
	answer(
	    f, READ(CHUNK(2, "Yg==") "," CHUNK(7, "Yw=="), 8,
		   RUNS ",\"gap\":{\"afterSeq\":2,\"lastSeq\":6,\"bytes\":10,"
			"\"endBytes\":12}"));
	assert_non_null(strstr(asked(f), "\"afterSeq\":7"));
	assert_seen(f, "out:a out:b gap:4/10 out:c ");
	answer(f, READ("", 10, CLOSED));
	assert_seen(f, "exit:3 closed ");
}

static void
test_resume(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, A);
	calls_lost(f->client);
	process_resume_all(f->client);
	assert_non_null(strstr(asked(f), "\"afterSeq\":1"));
	/* Lost again before the answer: the same request, sent again. */
	calls_lost(f->client);
	calls_resume(f->client);
	process_resume_all(f->client);
	event(f, "output", 3, C);
	answer(f, READ(CHUNK(1, "YQ==") "," CHUNK(2, "Yg=="), 3, RUNS));
	assert_null(asked(f));
	assert_seen(f, "out:a out:b out:c ");
}

static void
test_forgotten(void **state)
{
	struct fixture *f = *state;

	process_resume_all(f->client);
	answer(f, "\"error\":{\"code\":-32600,\"message\":\"unknown\"}");
	assert_seen(f, "failed:-1 ");
}

static void
test_bad_answers(void **state)
{
	static const char *const bad[] = { "\"result\":{}", "\"result\":7",
		"\"result\":{\"chunks\":[{}],\"nextSeq\":2}",
		"\"result\":{\"chunks\":[{\"seq\":1,\"stream\":\"x\","
		"\"chunk\":\"\"}],\"nextSeq\":2}",
		"\"result\":{\"chunks\":[{\"seq\":1,\"stream\":\"stdout\","
		"\"chunk\":\"*\"}],\"nextSeq\":2}" };

	teardown(state);
	for (size_t i = 0; i < nitems(bad); i++) {
		struct fixture *f;

		setup_attached(state);
		f = *state;
		process_resume_all(f->client);
		answer(f, bad[i]);
		assert_seen(f, "failed:-1 ");
		teardown(state);
	}
	setup_attached(state);
}

/* Malformed notifications are missing ones. */
static void
test_bad_events(void **state)
{
	struct fixture *f = *state;

	event(f, "output", 1, "");
	event(f, "output", 1, OUT("*"));
	event(f, "exited", 1, "");
	say(f, "{\"method\":\"process/output\",\"params\":7}");
	say(f, "{\"method\":\"process/output\"}");
	assert_seen(f, "");
	event(f, "output", 2, B);
	answer(f, READ(CHUNK(1, "YQ=="), 2, RUNS));
	assert_seen(f, "out:a out:b ");
}

static void
test_freed_in_a_callback(void **state)
{
	struct fixture *f = *state;

	f->free_at_exit = true;
	process_resume_all(f->client);
	answer(f, READ(CHUNK(1, "YQ=="), 4, CLOSED));
	assert_seen(f, "out:a exit:3 ");
	event(f, "output", 5, A);
	assert_seen(f, "");
}

static void
test_over(void **state)
{
	struct fixture *f = *state;

	process_resume_all(f->client);
	client_over(f->client, EXECD_FAILURE_LOST);
	assert_seen(f, "failed:-1 ");
	assert_null(asked(f));
}

/* --- Starts ------------------------------------------------------------- */

static void
start(struct fixture *f)
{
	static const char *const argv[] = { "true", NULL };
	static const struct execd_start s = { .argv = argv };

	f->client->has_info = true;
	assert_int_equal(json_parse(&f->client->info, "{}", 2), 0);
	assert_int_equal(
	    execd_process_start(f->client, &s, &events, f, &f->process), 0);
}

static void
test_started(void **state)
{
	struct fixture *f = *state;

	start(f);
	answer(f, "\"result\":{\"processId\":\"p\",\"sandboxType\":\"none\"}");
	assert_seen(f, "started:none ");
}

static void
test_refused(void **state)
{
	struct fixture *f = *state;

	start(f);
	answer(
	    f, "\"error\":{\"code\":-32600,\"message\":\"x already exists\"}");
	assert_seen(f, "failed:-32600 ");
}

/* Sent twice, because the first answer was lost: it was started once. */
static void
test_repeated(void **state)
{
	struct fixture *f = *state;

	start(f);
	calls_lost(f->client);
	calls_resume(f->client);
	process_resume_all(f->client);
	answer(
	    f, "\"error\":{\"code\":-32600,\"message\":\"x already exists\"}");
	assert_seen(f, "started:unknown ");
	answer(f, READ(CHUNK(1, "YQ=="), 4, CLOSED));
	assert_seen(f, "out:a exit:3 closed ");
}

static void
test_bad_starts(void **state)
{
	static const char *const words[] = { "\xff", NULL };
	static const char *const fine[] = { "true", NULL };
	static const char *const nothing[] = { "NAME", NULL };
	const struct execd_start bad[] = { { .argv = words },
		{ .argv = fine, .env = words },
		{ .argv = fine, .env = nothing },
		{ .argv = fine, .cwd = "relative" },
		{ .argv = fine, .timeout_ms = 1 } };
	static const int expected[] = { -EILSEQ, -EILSEQ, -EINVAL, -EINVAL,
		-ENOTSUP };
	struct fixture *f = *state;

	start(f);
	for (size_t i = 0; i < nitems(bad); i++)
		assert_int_equal(execd_process_start(f->client, &bad[i],
				     &events, f, &f->process),
		    expected[i]);
}

#define ATTACHED(test)                                                         \
	cmocka_unit_test_setup_teardown(test, setup_attached, teardown)
#define UNSTARTED(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACHED(test_in_order),
		ATTACHED(test_again),
		ATTACHED(test_missing_is_read),
		ATTACHED(test_read_goes_beyond_what_is_held),
		ATTACHED(test_lost_is_counted),
		ATTACHED(test_lost_bytes_and_their_place),
		ATTACHED(test_resume),
		ATTACHED(test_forgotten),
		ATTACHED(test_bad_answers),
		ATTACHED(test_bad_events),
		ATTACHED(test_freed_in_a_callback),
		ATTACHED(test_over),
		UNSTARTED(test_started),
		UNSTARTED(test_refused),
		UNSTARTED(test_repeated),
		UNSTARTED(test_bad_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
