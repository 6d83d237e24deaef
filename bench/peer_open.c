/* SPDX-License-Identifier: ISC */
/*
 * How a connection of the load client comes about, and the requests that it
 * makes most.
 */
#include <sys/epoll.h>
#include <sys/random.h>

#include "base.h"
#include "execctl.h"
#include "peer.h"
#include "upgrade.h"

#define BUFFER_MAX	(256u << 20)
#define OPEN_TIMEOUT_MS 30000
#define ANSWER_MAX	8192 /* of the upgrade */
#define INITIALIZE_ID	(-2) /* no mode uses it */

static void
wait_for(int fd, short events, const char *what)
{
	struct pollfd p = { .fd = fd, .events = events };
	int n;

	while ((n = poll(&p, 1, OPEN_TIMEOUT_MS)) < 0 && errno == EINTR)
		continue;
	if (n < 0)
		log_fatal_errno(-errno, "poll");
	if (n == 0)
		log_fatal("%s took more than %d ms", what, OPEN_TIMEOUT_MS);
}

static void
dial(struct peer *p)
{
	struct load *l = p->load;
	char *error = NULL;
	int err = stream_connect(&p->stream, &l->endpoint, &l->config, 0);

	if (err == -EINPROGRESS) {
		wait_for(p->stream.out, POLLOUT, "connect");
		err = stream_connected(&p->stream);
	}
	if (err < 0)
		log_fatal_errno(err, "connect to %s", l->url);
	if (l->endpoint.kind != ENDPOINT_WSS)
		return;
	while ((err = stream_handshake(
		    &p->stream, &l->endpoint, &l->config, &error)) == -EAGAIN)
		wait_for(p->stream.in, p->stream.tls_wants, "TLS handshake");
	if (err < 0)
		log_fatal("%s: %s", l->url, error);
}

static void
send_request(struct peer *p, char accept[WEBSOCKET_ACCEPT_LEN + 1])
{
	struct buf request;
	size_t at = 0;

	buf_init(&request, ANSWER_MAX);
	if (upgrade_request(&request, &p->load->endpoint, NULL, NULL, accept) <
	    0)
		log_fatal("no random numbers");
	while (at < request.len) {
		ssize_t n = stream_write(
		    &p->stream, request.data + at, request.len - at);

		if (n == -EAGAIN)
			wait_for(p->stream.out, POLLOUT, "the upgrade");
		else if (n < 0)
			log_fatal_errno((int)n, "upgrade");
		else
			at += (size_t)n;
	}
	buf_clear(&request);
}

static void
upgrade(struct peer *p)
{
	char accept[WEBSOCKET_ACCEPT_LEN + 1];
	const char *why = "not HTTP";
	ssize_t answer = 0;
	int status = 0;
	struct buf in;

	send_request(p, accept);
	buf_init(&in, ANSWER_MAX);
	while (answer == 0) {
		uint8_t *room = buf_reserve(&in, ANSWER_MAX - in.len);
		ssize_t n = stream_read(&p->stream, room, ANSWER_MAX - in.len);

		if (n == -EAGAIN) {
			wait_for(p->stream.in, POLLIN, "the upgrade");
			continue;
		}
		if (n <= 0)
			log_fatal_errno((int)n, "the upgrade had no answer");
		buf_commit(&in, (size_t)n);
		answer = upgrade_answer(
		    (const char *)in.data, in.len, accept, &status, &why);
	}
	if (answer < 0 || status != 101)
		log_fatal("upgrade: status %d, %s", status, why);
	if ((size_t)answer < in.len)
		log_fatal("the server spoke before it was asked");
	buf_clear(&in);
}

static void
on_initialized(struct load *l, struct peer *p, const struct rpc_message *m)
{
	l->done = message_id(m) == INITIALIZE_ID;
}

static void
initialize(struct peer *p)
{
	struct load *l = p->load;
	load_message_fn *before = l->on_message;
	struct json_writer w;

	peer_begin(p, &w, "initialize", INITIALIZE_ID);
	json_key(&w, "clientName");
	json_cstring(&w, "load");
	peer_send(p, &w);
	l->on_message = on_initialized;
	load_run(l);
	l->on_message = before;
	/* A notification: the id is left out. */
	p->text.len = 0;
	json_writer_init(&w, &p->text);
	json_begin(&w, '{');
	json_key(&w, "method");
	json_cstring(&w, "initialized");
	json_key_begin(&w, "params", '{');
	peer_send(p, &w);
}

struct peer *
peer_open(struct load *l)
{
	struct peer *p = xcalloc(1, sizeof(*p));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = p };

	p->load = l;
	stream_init(&p->stream);
	websocket_parser_init_client(&p->parser, WEBSOCKET_MESSAGE_MAX);
	buf_init(&p->whole, BUFFER_MAX);
	buf_init(&p->out, BUFFER_MAX);
	buf_init(&p->text, BUFFER_MAX);
	if (getrandom(p->mask, sizeof(p->mask), 0) != sizeof(p->mask))
		log_fatal("no random numbers");
	dial(p);
	upgrade(p);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, p->stream.in, &e) < 0)
		log_fatal_errno(-errno, "epoll_ctl");
	p->index = l->npeers++;
	l->peers = xreallocarray(l->peers, l->npeers, sizeof(*l->peers));
	l->peers[p->index] = p;
	initialize(p);
	buf_clear(&p->text);
	return p;
}

void
peer_close(struct peer *p)
{
	stream_close(&p->stream);
	buf_clear(&p->whole);
	buf_clear(&p->out);
	buf_clear(&p->text);
	free(p);
}

void
peer_start(struct peer *p, const char *process_id, int64_t id,
    const struct peer_command *command)
{
	struct json_writer w;

	peer_begin(p, &w, "process/start", id);
	json_key(&w, "processId");
	json_cstring(&w, process_id);
	json_key_begin(&w, "argv", '[');
	for (const char *const *a = command->argv; *a; a++)
		json_cstring(&w, *a);
	json_end(&w, ']');
	json_key(&w, "cwd");
	json_cstring(&w, "file:///tmp");
	json_key_begin(&w, "env", '{');
	json_key(&w, "PATH");
	json_cstring(&w, "/usr/local/bin:/usr/bin:/bin");
	json_end(&w, '}');
	json_key(&w, "tty");
	json_bool(&w, command->tty);
	json_key(&w, "pipeStdin");
	json_bool(&w, command->pipe_stdin);
	if (command->sandbox) {
		json_key(&w, "sandbox");
		sandbox_profile_write(
		    &p->text, "workspace-write", p->load->path, false);
	}
	peer_send(p, &w);
}

void
peer_write(struct peer *p, const char *process_id, int64_t id, const void *data,
    size_t len)
{
	struct json_writer w;
	char write_id[32];

	snprintf(write_id, sizeof(write_id), "w%lld", (long long)id);
	peer_begin(p, &w, "process/write", id);
	json_key(&w, "processId");
	json_cstring(&w, process_id);
	json_key_base64(&w, "chunk", data, len);
	json_key(&w, "writeId");
	json_cstring(&w, write_id);
	peer_send(p, &w);
}
