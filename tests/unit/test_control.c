/* SPDX-License-Identifier: ISC */
/*
 * control: every message survives a round trip, and no cut, stretched or
 * foreign message decodes.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "control_layout.h"

static const struct {
	enum control_type type;
	size_t size;
} messages[] = {
	{ BROKER_EV_CONFIGURE, sizeof(struct control_configure) },
	{ BROKER_EV_RUNNER_EXITED, sizeof(struct control_runner_exited) },
	{ BROKER_EV_RELOAD, sizeof(struct control_configure) },
	{ BROKER_EV_DRAIN, sizeof(struct control_drain) },
	{ BROKER_EV_LOAD, sizeof(struct control_load) },
	{ BROKER_EV_STOP, 0 },
	{ BROKER_EV_LEAVE, 0 },
	{ BROKER_EV_END, sizeof(struct control_runner_exited) },
	{ BROKER_EV_LISTENER, sizeof(struct control_listener) },
	{ BROKER_REQ_READY, sizeof(struct control_ready) },
	{ BROKER_REQ_AUTHENTICATE, sizeof(struct control_authenticate) },
	{ BROKER_ANS_AUTHENTICATE, sizeof(struct control_verdict) },
	{ BROKER_REQ_OPEN, sizeof(struct control_open) },
	{ BROKER_ANS_OPEN, sizeof(struct control_session) },
	{ BROKER_REQ_RESUME, sizeof(struct control_resume) },
	{ BROKER_ANS_RESUME, sizeof(struct control_session) },
	{ BROKER_REQ_CLOSE, sizeof(struct control_close) },
	{ BROKER_ANS_CLOSE, sizeof(struct control_closed) },
	{ BROKER_REQ_DONE, 0 },
	{ BROKER_REQ_WATCH, sizeof(struct control_resume) },
	{ BROKER_REQ_REFUSED, sizeof(struct control_refused) },
	{ BROKER_EV_PING, sizeof(struct control_ping) },
	{ BROKER_EV_IDLE, 0 },
	{ BROKER_REQ_ALIVE, 0 },
	{ BROKER_REQ_HELPER, sizeof(struct control_helper) },
	{ BROKER_EV_PROBE, sizeof(struct control_probe) },
	{ BROKER_REQ_PROBED, sizeof(struct control_probed) },
	{ BROKER_REQ_METRICS, sizeof(struct control_authenticate) },
	{ BROKER_ANS_METRICS, sizeof(struct control_metrics) },
	{ BROKER_ANS_WATCH, sizeof(struct control_session) },
	{ RUNNER_COMMAND_CONFIGURE, sizeof(struct control_session_config) },
	{ RUNNER_COMMAND_ATTACH, sizeof(struct control_attach) },
	{ RUNNER_COMMAND_ATTACH_PROXIED, sizeof(struct control_attach) },
	{ RUNNER_COMMAND_PROBE, sizeof(struct control_runner_probe) },
	{ RUNNER_EVENT_PROBED, sizeof(struct control_runner_probe) },
	{ RUNNER_COMMAND_DETACH, 0 },
	{ RUNNER_COMMAND_TERMINATE, 0 },
	{ RUNNER_COMMAND_WATCH, sizeof(struct control_watch) },
	{ RUNNER_COMMAND_SANDBOX, sizeof(struct sandbox_limits) },
	{ RUNNER_EVENT_DETACHED, sizeof(struct control_detached) },
	{ RUNNER_EVENT_UNWATCHED, sizeof(struct control_unwatched) },
	{ RUNNER_EVENT_STARTED, sizeof(struct control_started) },
	{ RUNNER_EVENT_EXITED, sizeof(struct control_exited) },
	{ RUNNER_COMMAND_AUDIT, sizeof(struct control_audit) },
	{ RUNNER_COMMAND_AUDIT_STATE, sizeof(struct control_audit_state) },
	{ RUNNER_EVENT_FILE, sizeof(struct control_file) },
	{ RUNNER_EVENT_HTTP, sizeof(struct control_http) },
	{ RUNNER_EVENT_NETWORK, sizeof(struct control_network) },
	{ RUNNER_EVENT_LIMITED, sizeof(struct control_limited) },
	{ RUNNER_EVENT_END, 0 },
	{ RUNNER_EVENT_REDIRECTS, sizeof(struct control_redirects) },
	{ RUNNER_EVENT_RECORDING_FILE,
	    sizeof(struct control_recording_wanted) },
	{ RUNNER_COMMAND_RECORDING_FILE,
	    sizeof(struct control_recording_file) },
	{ CHANNEL_CLIENT, sizeof(struct control_client) },
	{ KEYS_CONFIGURE, sizeof(struct control_key) },
	{ KEYS_SERVE, sizeof(struct control_serve) },
	{ KEYS_SIGN, sizeof(struct control_sign) },
	{ KEYS_SIGNED, sizeof(struct control_signed) },
	{ KEYS_TRUST, sizeof(struct control_trust) },
	{ KEYS_VERIFY, sizeof(struct control_verify) },
	{ KEYS_VERIFIED, sizeof(struct control_verified) },
	{ KEYS_PING, sizeof(struct control_alive) },
	{ KEYS_ALIVE, sizeof(struct control_alive) },
	{ RUNNER_COMMAND_IDENTIFY, 0 },
	{ RUNNER_EVENT_IDENTITY, sizeof(struct control_identity) },
	{ RUNNER_EVENT_RUNNING, sizeof(struct control_running) },
	{ RUNNER_EVENT_KEEP, sizeof(struct control_keep_wanted) },
	{ RUNNER_COMMAND_KEEP, sizeof(struct control_keep) },
	{ RUNNER_EVENT_KEPT, sizeof(struct control_keep_state) },
	{ RUNNER_EVENT_LIST, sizeof(struct control_list_wanted) },
	{ RUNNER_COMMAND_LIST, sizeof(struct control_list) },
	{ RUNNER_COMMAND_TOKEN, sizeof(struct control_token) },
	{ RUNNER_EVENT_TOKEN, sizeof(struct control_token) },
	{ RUNNER_COMMAND_COMMANDS, 0 },
	{ RUNNER_EVENT_COMMANDS, sizeof(struct control_commands) },
};

static void
put_zero(struct buf *b, size_t i)
{
	static const uint8_t zeros[CONTROL_MESSAGE_MAX * 2];

	buf_init(b, CONTROL_MESSAGE_MAX);
	control_put(b, messages[i].type, zeros);
	assert_false(b->failed);
}

static void
test_every_length_is_exact(void **state)
{
	static uint8_t payload[CONTROL_MESSAGE_MAX * 2];

	for (size_t i = 0; i < nitems(messages); i++) {
		struct buf b;

		put_zero(&b, i);
		assert_int_equal(control_peek(b.data, b.len), messages[i].type);
		assert_int_equal(
		    control_get(b.data, b.len, messages[i].type, payload), 0);
		for (size_t n = 0; n < b.len; n++)
			assert_int_equal(
			    control_get(b.data, n, messages[i].type, payload),
			    -EBADMSG);
		buf_put_u8(&b, 0);
		assert_int_equal(
		    control_get(b.data, b.len, messages[i].type, payload),
		    -EBADMSG);
		buf_clear(&b);
	}
}

static void
test_values_survive(void **state)
{
	struct control_configure in = { .limits.max_message_bytes = 1ULL << 40,
		.listeners = 2,
		.limits.exempt.items = { { 1, 2, 3 } } },
				 out;
	struct control_resume rin = { .conn = 3,
		.grant = { 1, 2, 255 },
		.session_id = "some-id" },
			      rout;
	struct buf b;

	buf_init(&b, CONTROL_MESSAGE_MAX);
	control_put(&b, BROKER_EV_CONFIGURE, &in);
	memset(&out, 0, sizeof(out));
	assert_int_equal(
	    control_get(b.data, b.len, BROKER_EV_CONFIGURE, &out), 0);
	assert_true(out.limits.max_message_bytes == 1ULL << 40);
	assert_int_equal(out.limits.exempt.items[0][2], 3);
	buf_clear(&b);
	control_put(&b, BROKER_REQ_RESUME, &rin);
	assert_int_equal(
	    control_get(b.data, b.len, BROKER_REQ_RESUME, &rout), 0);
	assert_memory_equal(rout.grant, rin.grant, sizeof(rin.grant));
	assert_string_equal(rout.session_id, "some-id");
	assert_int_equal(
	    control_get(b.data, b.len, BROKER_REQ_OPEN, &rout), -EBADMSG);
	buf_clear(&b);
}

static void
test_unknown_types(void **state)
{
	for (uint32_t type = 0; type < 300; type++) {
		bool known = false;
		struct buf b;

		for (size_t i = 0; i < nitems(messages); i++)
			known |= messages[i].type == type;
		buf_init(&b, 16);
		buf_put_u32(&b, type);
		assert_int_equal(control_peek(b.data, b.len) != 0, known);
		buf_clear(&b);
	}
}

static void
test_bool_is_0_or_1(void **state)
{
	struct control_ready ready = { 0 };
	struct buf b;

	buf_init(&b, 64);
	control_put(&b, BROKER_REQ_READY, &ready);
	b.data[8] = 2;
	assert_int_equal(
	    control_get(b.data, b.len, BROKER_REQ_READY, &ready), -EBADMSG);
	buf_clear(&b);
}

/* --- versions ------------------------------------------------------------ */

static const enum control_type firsts[] = { BROKER_EV_CONFIGURE,
	BROKER_REQ_READY, RUNNER_COMMAND_CONFIGURE, RUNNER_COMMAND_IDENTIFY,
	RUNNER_EVENT_IDENTITY, KEYS_CONFIGURE, KEYS_TRUST, KEYS_SERVE };

static unsigned
oldest_of(enum control_type type, unsigned newest)
{
	for (size_t i = 0; i < control_layouts_runner.count; i++)
		if (control_layouts_runner.rows[i].type == type)
			return control_layouts_runner.oldest;
	return newest;
}

static void
test_another_version_is_refused_as_that(void **state)
{
	static const uint8_t zeros[CONTROL_MESSAGE_MAX * 2];
	static uint8_t payload[CONTROL_MESSAGE_MAX * 2];
	static const uint8_t others[] = { 0, 200, 255 };
	char fault[CONTROL_FAULT_MAX], expected[CONTROL_FAULT_MAX];

	for (size_t i = 0; i < nitems(firsts); i++)
		for (size_t v = 0; v < nitems(others); v++) {
			struct buf b;
			unsigned own;

			buf_init(&b, CONTROL_MESSAGE_MAX);
			control_put(&b, firsts[i], zeros);
			own = b.data[4];
			assert_string_equal(control_fault(b.data, b.len, fault),
			    control_name(firsts[i]));
			b.data[4] = others[v];
			assert_int_equal(
			    control_get(b.data, b.len, firsts[i], payload),
			    -EPROTO);
			snprintf(expected, sizeof(expected),
			    "%s of version %u; this program speaks %u to %u",
			    control_name(firsts[i]), others[v],
			    oldest_of(firsts[i], own), own);
			assert_string_equal(
			    control_fault(b.data, b.len, fault), expected);
			buf_clear(&b);
		}
}

/* Those that a runner of the version before may get or send: it was configured
 * by the broker that started it. */
static bool
outlives_a_broker(enum control_type type)
{
	return type != RUNNER_COMMAND_CONFIGURE &&
	       type != RUNNER_COMMAND_AUDIT && type != CHANNEL_CLIENT;
}

static uint32_t
mix(uint32_t hash, size_t value)
{
	return (hash ^ (uint32_t)value) * 16777619u;
}

/*
 * Of a changed message this number is another one. Then RUNNER_VERSION is
 * raised, and the broker speaks the version before as well
 * (control_version.h). To write the new number here is the last step of that.
 */
static void
test_a_changed_message_is_another_version(void **state)
{
	static const uint32_t of_version[] = { 0, 0xd85357b2u, 0x9208df18u,
		0x1c8e5554u, 0x82f8f73fu, 0x4630af8au };
	const struct control_layouts *runner = &control_layouts_runner;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < runner->count; i++) {
		const struct control_layout *l = &runner->rows[i];

		if (!outlives_a_broker(l->type))
			continue;
		hash = mix(mix(hash, l->type), l->count);
		for (size_t f = 0; f < l->count; f++)
			hash = mix(
			    mix(hash, l->fields[f].kind), l->fields[f].size);
	}
	assert_int_equal(runner->version, nitems(of_version) - 1);
	assert_int_equal(hash, of_version[runner->version]);
}

/* Of two messages with one number, the second would be read as the first. */
static void
test_no_number_stands_for_two_messages(void **state)
{
	const struct control_layouts *runner = &control_layouts_runner;

	for (size_t i = 0; i < runner->count; i++)
		for (size_t j = i + 1; j < runner->count; j++)
			assert_int_not_equal(
			    runner->rows[i].type, runner->rows[j].type);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length_is_exact),
		cmocka_unit_test(test_values_survive),
		cmocka_unit_test(test_unknown_types),
		cmocka_unit_test(test_bool_is_0_or_1),
		cmocka_unit_test(test_another_version_is_refused_as_that),
		cmocka_unit_test(test_a_changed_message_is_another_version),
		cmocka_unit_test(test_no_number_stands_for_two_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
