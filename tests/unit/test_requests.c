/* SPDX-License-Identifier: ISC */
/*
 * requests: the front-end's door to the broker. Every known message in every
 * state of the front-end, then as many made-up ones as the first argument
 * says (seed: the second), against a model of what may be granted. No session
 * is opened here: the broker is draining.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "broker_main.h"
#include "broker_options.h"
#include "broker_state.h"
#include "conf.h"
#include "credential.h"
#include "frontend_child.h"
#include "identity.h"
#include "requests.h"
#include "seqpacket.h"
#include "session_registry.h"
#include "systemd.h"
#include "tcp_peer.h"
#include "util.h"

#define CONNECTIONS 8 /* numbers that the made-up messages use */
#define TYPES	    96

static unsigned long messages = 20000;
static struct frontend the_frontend;
static struct helpers the_helpers;
static struct registry the_sessions;
static unsigned seed = 7;
static int front;      /* its end of the control channel */
static int channel[2]; /* what it could give a runner */

static const enum control_type requests[] = { BROKER_REQ_READY,
	BROKER_REQ_AUTHENTICATE, BROKER_REQ_OPEN, BROKER_REQ_RESUME,
	BROKER_REQ_WATCH, BROKER_REQ_CLOSE, BROKER_REQ_METRICS, BROKER_REQ_DONE,
	BROKER_REQ_REFUSED, BROKER_REQ_ALIVE, BROKER_REQ_HELPER,
	BROKER_REQ_PROBED };
static const enum frontend_state states[] = { FRONTEND_DOWN, FRONTEND_CONFINING,
	FRONTEND_SERVING };

/* What was granted, as the front-end knows it. */
static struct {
	bool granted;
	uint8_t token[CONTROL_GRANT_BYTES];
} model[CONNECTIONS];

static void
ignore(evutil_socket_t fd, short what, void *arg)
{
}

/* As systemd passes one: only root binds those that the configuration names. */
static int
pass_listener(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char pid[16];

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(fd, 16) < 0 || dup2(fd, 3) < 0)
		return -1;
	if (fd != 3)
		close(fd);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("LISTEN_PID", pid, true);
	setenv("LISTEN_FDS", "1", true);
	setenv("LISTEN_FDNAMES", "main", true);
	activation_init();
	return 0;
}

static int
set_up(void **state)
{
	static struct options options;
	char *argv[] = { (char *)(uintptr_t) "execd",
		(char *)(uintptr_t) "--listen",
		(char *)(uintptr_t) "systemd:main", NULL };
	int code, pair[2];

	if (pass_listener() < 0 || options_parse(&options, 3, argv) >= 0)
		return -1;
	/* Whom commands would run as does not matter: none runs. */
	options.user = geteuid() == 0 ? "nobody" : NULL;
	broker.options = &options;
	broker.announced = broker.draining = true;
	broker.on = &broker_events;
	broker.frontend = &the_frontend;
	broker.helpers = &the_helpers;
	frontend_init(broker.frontend);
	broker.sessions = &the_sessions;
	watch_init(true);
	broker.conf = conf_load(&options, &code);
	if (broker.conf == NULL ||
	    listener_open(broker.conf->listeners[0]) != 0 ||
	    seqpacket_pair(pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) < 0)
		return -1;
	front = pair[1];
	return watch_add(
	    &broker.frontend->control, pair[0], EV_READ, ignore, NULL);
}

static int
tear_down(void **state)
{
	requests_forget(&broker);
	close(front);
	close(channel[0]);
	close(channel[1]);
	watch_close(&broker.frontend->control);
	table_clear(&broker.frontend->grants);
	conf_free(broker.conf);
	return 0;
}

static bool
wants_channel(enum control_type type)
{
	return type == BROKER_REQ_OPEN || type == BROKER_REQ_RESUME ||
	       type == BROKER_REQ_WATCH;
}

static int
take(const struct buf *b, int fd)
{
	int err = request_take(&broker, b->data, b->len, &fd);

	if (fd >= 0)
		close(fd);
	return err;
}

/* With what the request wants. */
static int
take_good(const struct buf *b, enum control_type type)
{
	return take(b, wants_channel(type) ? dup(channel[0]) : -1);
}

/* The next answer, decoded. False: there is none. */
static bool
take_answer(enum control_type type, void *answer)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;
	ssize_t n = seqpacket_recv(front, packet, sizeof(packet), fds, &nfds);

	if (n == -EAGAIN)
		return false;
	assert_true(n > 0);
	/* What there is no session for comes back. */
	assert_int_equal(nfds, wants_channel(type - 1));
	if (nfds > 0)
		close(fds[0]);
	assert_int_equal(control_get(packet, (size_t)n, type, answer), 0);
	return true;
}

static void
put_request(struct buf *b, enum control_type type, uint32_t conn,
    const uint8_t token[CONTROL_GRANT_BYTES])
{
	struct control_ready ready = { true, true, true, true };
	struct control_authenticate a = { .conn = conn, .peer = "stdio" };
	struct control_open open = { .conn = conn };
	struct control_resume resume = { .conn = conn,
		.session_id = "00000000-0000-4000-8000-000000000000" };
	struct control_close close = { .conn = conn };
	struct control_refused refused = { .peer = "websocket" };
	struct control_helper helper = { .kind = TLS_HELPER_KEYS };
	struct control_probed probed = { .conn = conn };

	if (token != NULL) {
		memcpy(open.grant, token, sizeof(open.grant));
		memcpy(resume.grant, token, sizeof(resume.grant));
	}
	buf_init(b, CONTROL_MESSAGE_MAX);
	control_put(b, type,
	    type == BROKER_REQ_READY	      ? (void *)&ready
	    : type == BROKER_REQ_AUTHENTICATE ? (void *)&a
	    : type == BROKER_REQ_OPEN	      ? (void *)&open
	    : type == BROKER_REQ_CLOSE	      ? (void *)&close
	    : type == BROKER_REQ_METRICS      ? (void *)&a
	    : type == BROKER_REQ_REFUSED      ? (void *)&refused
	    : type == BROKER_REQ_HELPER	      ? (void *)&helper
	    : type == BROKER_REQ_PROBED	      ? (void *)&probed
	    : type == BROKER_REQ_ALIVE	      ? NULL
	    : type == BROKER_REQ_DONE	      ? NULL
					      : (void *)&resume);
}

static void
ignore_answers(void)
{
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;

	while (seqpacket_recv(front, packet, sizeof(packet), fds, &nfds) > 0)
		while (nfds > 0)
			close(fds[--nfds]);
}

static void
grant(uint32_t conn, uint8_t token[CONTROL_GRANT_BYTES])
{
	struct control_verdict v;
	struct buf b;

	put_request(&b, BROKER_REQ_AUTHENTICATE, conn, NULL);
	assert_int_equal(take(&b, -1), 0);
	assert_true(take_answer(BROKER_ANS_AUTHENTICATE, &v));
	assert_int_equal(v.verdict, VERDICT_GRANTED);
	memcpy(token, v.grant, sizeof(v.grant));
	buf_clear(&b);
}

static bool
is_request(uint32_t type)
{
	for (size_t i = 0; i < nitems(requests); i++)
		if (requests[i] == type)
			return true;
	return false;
}

enum gift { NOTHING, PACKETS, A_FILE, A_CHANNEL, GIFTS };

static int
open_gift(enum gift gift)
{
	return gift == PACKETS	   ? dup(front)
	       : gift == A_FILE	   ? open("/dev/null", O_RDWR)
	       : gift == A_CHANNEL ? dup(channel[0])
				   : -1;
}

/* What an otherwise good request comes to, its connection having a grant. */
static int
expected(enum control_type type, enum frontend_state state, enum gift gift)
{
	enum frontend_state when =
	    type == BROKER_REQ_READY ? FRONTEND_CONFINING : FRONTEND_SERVING;

	if (state != when)
		return -EACCES;
	if (type == BROKER_REQ_AUTHENTICATE)
		return -EPERM; /* it has one already */
	if (type == BROKER_REQ_METRICS)
		return -EPERM; /* there is no operator's listener */
	if (gift != (wants_channel(type) ? A_CHANNEL : NOTHING))
		return -EBADMSG;
	/* There is no stdio; nobody has asked. */
	return type == BROKER_REQ_DONE || type == BROKER_REQ_ALIVE ? -EPERM : 0;
}

static void
check_request(enum control_type type, enum frontend_state state, enum gift gift)
{
	uint8_t token[CONTROL_GRANT_BYTES];
	struct buf b;
	int err;

	broker.frontend->state = FRONTEND_SERVING;
	grant(1, token);
	broker.frontend->state = state;
	put_request(&b, type, 1, token);
	err = take(&b, open_gift(gift));
	if (err != expected(type, state, gift))
		fail_msg("%s in state %u, descriptor %d: %d",
		    control_name(type), state, gift, err);
	/* A byte more is no message. */
	buf_put_u8(&b, 0);
	err = take_good(&b, type);
	assert_true(err == -EBADMSG || err == -EACCES);
	buf_clear(&b);
	ignore_answers();
	requests_forget(&broker);
}

static void
test_every_message_in_every_state(void **state)
{
	for (uint32_t type = 0; type < TYPES; type++)
		for (size_t i = 0; i < nitems(states); i++) {
			struct buf b;

			if (is_request(type)) {
				for (int gift = 0; gift < GIFTS; gift++)
					check_request(
					    type, states[i], (enum gift)gift);
				continue;
			}
			broker.frontend->state = states[i];
			buf_init(&b, 64);
			buf_put_u32(&b, type);
			assert_int_equal(take(&b, -1), -ENOSYS);
			buf_clear(&b);
		}
}

/* --- auth = peer-user --------------------------------------------------- */

#define SOMEBODY 4711 /* as root; else one's own user comes */

/* A connection to the listening socket, made by that user. Returns the end that
 * was accepted. */
static int
come(int listening, uid_t uid, int *client)
{
	struct sockaddr_in to;
	socklen_t len = sizeof(to);

	getsockname(listening, (struct sockaddr *)&to, &len);
	setfsuid(uid);
	*client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setfsuid(geteuid());
	assert_int_equal(connect(*client, (struct sockaddr *)&to, len), 0);
	return accept4(listening, NULL, NULL, SOCK_CLOEXEC);
}

/* Gives AUTHENTICATE this descriptor. Returns an enum verdict, or -errno. */
static int
authenticate_with(int fd)
{
	struct control_verdict v;
	struct buf b;
	int err;

	put_request(&b, BROKER_REQ_AUTHENTICATE, 1, NULL);
	err = take(&b, fd);
	buf_clear(&b);
	if (err < 0)
		return err;
	assert_true(take_answer(BROKER_ANS_AUTHENTICATE, &v));
	return v.verdict;
}

static void
expect_user(int listening, uid_t uid, int verdict)
{
	int client, fd = come(listening, uid, &client);

	assert_int_equal(authenticate_with(fd), verdict);
	close(client);
}

/* A lying front-end sends something else than the client's connection. */
static void
expect_lies(int listening)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uid_t uid = geteuid() == 0 ? SOMEBODY : geteuid();
	int client, fd;

	for (int gift = 0; gift < GIFTS; gift++)
		assert_int_equal(
		    authenticate_with(open_gift((enum gift)gift)), -EBADMSG);
	/* a connection of a user who may come in, at another port */
	assert_int_equal(bind(other, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(other, 1), 0);
	assert_int_equal(
	    authenticate_with(come(other, uid, &client)), -EBADMSG);
	close(client);
	close(other);
	/* the other end */
	fd = come(listening, uid, &client);
	assert_int_equal(authenticate_with(client), -EBADMSG);
	close(fd);
}

static void
test_whose_connection_it_is(void **state)
{
	struct listener *l = broker.conf->listeners[0];
	struct identity *id = broker.conf->identities[0];
	uid_t uid = geteuid() == 0 ? SOMEBODY : geteuid();
	int client, fd;

	broker.frontend->state = FRONTEND_SERVING;
	l->keys.peer_user = true;
	l->diag_fd = tcp_peer_open(l->fd);
	assert_true(l->diag_fd >= 0);
	strings_add(&id->peer_users, "somebody");
	free(id->peer_uids);
	id->peer_uids = xcalloc(1, sizeof(*id->peer_uids));
	id->peer_uids[0] = uid;

	expect_user(l->fd, uid, VERDICT_GRANTED);
	assert_non_null(strstr(
	    grant_find(broker.frontend, 1)->peer, " of somebody, listener "));
	requests_forget(&broker);
	expect_lies(l->fd);
	if (geteuid() == 0) {
		expect_user(l->fd, 0, VERDICT_STRANGER);
		expect_user(l->fd, SOMEBODY + 1, VERDICT_STRANGER);
	}
	/* Connect, send, close: the kernel would answer root's uid. */
	id->peer_uids[0] = 0;
	fd = come(l->fd, uid, &client);
	close(client);
	assert_int_equal(authenticate_with(fd), VERDICT_STRANGER);
	l->keys.peer_user = false;
	requests_forget(&broker);
}

/* Whose token has expired may resume, and ask for nothing else. */
static void
test_a_grant_to_resume(void **state)
{
	static struct control_token bearer;
	uint8_t token[CONTROL_GRANT_BYTES];

	broker.frontend->state = FRONTEND_SERVING;
	for (size_t i = 0; i < nitems(requests); i++) {
		struct control_session answer;
		struct grant *g;
		struct buf b;
		int err;

		if (!wants_channel(requests[i]))
			continue;
		grant(1, token);
		g = grant_find(broker.frontend, 1);
		g->resume_only = true;
		g->bearer = xmalloc(sizeof(bearer));
		*g->bearer = bearer;
		put_request(&b, requests[i], 1, token);
		err = take_good(&b, requests[i]);
		buf_clear(&b);
		if (requests[i] == BROKER_REQ_RESUME) {
			assert_int_equal(err, 0);
			assert_true(take_answer(BROKER_ANS_RESUME, &answer));
			assert_int_equal(answer.result, SESSION_UNKNOWN);
		} else {
			assert_int_equal(err, -EPERM);
		}
		assert_null(g->session);
		requests_forget(&broker);
	}
}

/* --- made-up messages ---------------------------------------------------- */

static uint32_t
pick(uint32_t n)
{
	return (uint32_t)rand_r(&seed) % n;
}

/* A good request with some bytes changed, cut or appended. */
static void
spoil(struct buf *b)
{
	uint32_t kind = pick(3);

	if (kind == 0)
		b->len = pick((uint32_t)b->len);
	else if (kind == 1)
		for (uint32_t n = 1 + pick(4); n > 0; n--)
			buf_put_u8(b, (uint8_t)pick(256));
	else
		b->data[pick((uint32_t)b->len)] ^= (uint8_t)(1 + pick(255));
}

/* An unspoilt request: exactly what the model permits is done. */
static void
send_good(void)
{
	uint32_t conn = pick(CONNECTIONS), of = pick(CONNECTIONS);
	enum control_type type = requests[1 + pick(5)];
	struct control_session answer;
	struct control_closed closed;
	struct control_verdict v;
	struct buf b;
	int err;

	put_request(&b, type, conn, model[of].token);
	err = take_good(&b, type);
	buf_clear(&b);
	if (type == BROKER_REQ_AUTHENTICATE) {
		assert_int_equal(err, model[conn].granted ? -EPERM : 0);
		if (err < 0)
			return;
		assert_true(take_answer(BROKER_ANS_AUTHENTICATE, &v));
		memcpy(model[conn].token, v.grant, sizeof(v.grant));
		model[conn].granted = true;
	} else if (type == BROKER_REQ_CLOSE) {
		assert_int_equal(err, model[conn].granted ? 0 : -EPERM);
		if (err == 0)
			assert_true(take_answer(BROKER_ANS_CLOSE, &closed));
		model[conn].granted = false;
	} else {
		bool own = model[conn].granted &&
			   !memcmp(model[conn].token, model[of].token,
			       CONTROL_GRANT_BYTES);

		assert_int_equal(err, own ? 0 : -EPERM);
		if (err == 0)
			assert_true(take_answer(type + 1, &answer));
		assert_true(err < 0 || answer.result != SESSION_OK);
	}
}

/* A spoilt one is refused, or by chance it is another good one: then there is
 * at most one grant more. */
static void
send_spoilt(void)
{
	size_t grants = broker.frontend->grants.count;
	uint32_t conn = pick(CONNECTIONS);
	enum control_type type = requests[pick(nitems(requests))];
	struct buf b;
	int err;

	put_request(&b, type, conn, model[conn].token);
	spoil(&b);
	err = take_good(&b, type);
	buf_clear(&b);
	if (err < 0) {
		assert_true(err == -EBADMSG || err == -ENOSYS ||
			    err == -EPERM || err == -EACCES);
		assert_int_equal(broker.frontend->grants.count, grants);
		return;
	}
	assert_true(broker.frontend->grants.count <= grants + 1);
	ignore_answers();
	requests_forget(&broker);
	memset(model, 0, sizeof(model));
}

static void
test_made_up_messages(void **state)
{
	print_message("%lu messages, seed %u\n", messages, seed);
	broker.frontend->state = FRONTEND_SERVING;
	for (unsigned long i = 0; i < messages; i++) {
		if (i % 2)
			send_good();
		else
			send_spoilt();
		assert_int_equal(broker.frontend->state, FRONTEND_SERVING);
		assert_int_equal(broker.sessions->by_id.count, 0);
		assert_false(broker.stopping);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_message_in_every_state),
		cmocka_unit_test(test_whose_connection_it_is),
		cmocka_unit_test(test_a_grant_to_resume),
		cmocka_unit_test(test_made_up_messages),
	};

	if (argc > 1)
		messages = strtoul(argv[1], NULL, 10);
	if (argc > 2)
		seed = (unsigned)strtoul(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
