/* SPDX-License-Identifier: ISC */
/*
 * Starts a command, goes away, and comes back to it as another client would on
 * another day.
 *
 *	cc -o resume resume.c $(pkg-config --cflags --libs execd-client)
 */
#include <execd-client.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool started, kept, over;
static int code = 125;

static void
on_started(void *arg, const char *sandbox_type)
{
	(void)arg;
	(void)sandbox_type;
	started = true;
}

static void
output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	(void)arg;
	fwrite(data, 1, len, stream == EXECD_STDERR ? stderr : stdout);
}

static void
exited(void *arg, const struct execd_exit *how)
{
	(void)arg;
	code = how->code;
}

static void
closed(void *arg)
{
	(void)arg;
	over = true;
}

static void
failed(void *arg, int why, const char *message)
{
	(void)arg;
	(void)why;
	fprintf(stderr, "%s\n", message);
	exit(125);
}

static void
on_kept(void *arg, const struct execd_answer *answer)
{
	if (answer->code != 0)
		failed(arg, answer->code, answer->message);
	kept = true;
}

static void
on_ended(void *arg, const struct execd_answer *answer)
{
	(void)answer;
	*(bool *)arg = true;
}

/* Runs the client until *what is true. */
static void
await(struct execd_client *c, const bool *what)
{
	while (!*what)
		if (execd_client_run(c, -1) < 0)
			failed(NULL, 0, execd_client_error(c));
}

static struct execd_client *
connect_to(const struct execd_environment *server, const char *session)
{
	return execd_client_new(&(struct execd_options){ .url = server->url,
	    .token = server->token,
	    .ca_file = server->ca_file,
	    .session_id = session });
}

/* Returns the id of the process; *session is that of its session. The caller
 * frees both. */
static char *
begin(const struct execd_environment *server, char **session)
{
	static const struct execd_process_events events = {
		.started = on_started, .failed = failed
	};
	/* The session stays ten minutes longer than the command. */
	static const char keep[] = "{\"keepMs\":600000,\"whileRunning\":true}";
	struct execd_client *c = connect_to(server, NULL);
	struct execd_process *p;
	char *id;

	if (execd_process_start(c,
		&(struct execd_start){
		    .argv = (const char *[]){ "/bin/sh", "-c",
			"for i in 1 2 3; do echo line $i; sleep 0.1; done; "
			"exit 4",
			NULL } },
		&events, NULL, &p) < 0)
		failed(NULL, 0, execd_client_error(c));
	await(c, &started);
	execd_client_request(
	    c, "session/keep", keep, strlen(keep), EXECD_REPEAT, on_kept, NULL);
	await(c, &kept);
	*session = strdup(execd_client_session(c));
	id = strdup(execd_process_id(p));
	execd_client_free(c);
	return id;
}

int
main(void)
{
	static const struct execd_process_events events = { .output = output,
		.exited = exited,
		.closed = closed,
		.failed = failed };
	struct execd_environment server;
	struct execd_client *c;
	bool ended = false;
	char *id, *session, *why;

	if (execd_environment_find(NULL, &server, &why) < 0)
		failed(NULL, 0, why);
	signal(SIGPIPE, SIG_IGN); /* TLS writes to sockets */
	id = begin(&server, &session);

	c = connect_to(&server, session);
	execd_process_attach(c, id, &events, NULL);
	await(c, &over);
	printf("it ended with %d\n", code);
	execd_client_request(c, "session/end", NULL, 0, 0, on_ended, &ended);
	await(c, &ended);
	execd_client_free(c);
	free(id);
	free(session);
	execd_environment_clear(&server);
	return 0;
}
