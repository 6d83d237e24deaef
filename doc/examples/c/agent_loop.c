/* SPDX-License-Identifier: ISC */
/*
 * This is the loop of an agent. A model asks for tools, and they act on the
 * server, in a sandbox: agent_loop DIRECTORY
 *
 *	cc -o agent_loop agent_loop.c $(pkg-config --cflags --libs execd-client)
 *
 * The model here is a list of what it says; a real one gets each result and
 * answers with the next call.
 */
#include <execd-client.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct call {
	const char *command;
	const char *input; /* NULL: none */
	uint64_t timeout_ms;
} script[] = {
	{ "cat >sum.py", "print(sum([1, 2, 3]))\n", 60000 },
	{ "python3 sum.py", NULL, 60000 },
	{ "touch /etc/passwd", NULL, 60000 }, /* the sandbox refuses it */
	{ "sleep 1000", NULL, 200 },
	{ "cat missing", NULL, 60000 },
};

/* This is what a tool answers. */
struct result {
	char output[4000]; /* the beginning of it */
	size_t len;
	bool over, denied, timed_out;
	int code;
	char error[200]; /* it did not run */
};

static void
output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	struct result *r = arg;

	(void)stream;
	if (len > sizeof(r->output) - r->len)
		len = sizeof(r->output) - r->len;
	memcpy(r->output + r->len, data, len);
	r->len += len;
}

static void
exited(void *arg, const struct execd_exit *how)
{
	struct result *r = arg;

	r->code = how->code;
	r->denied = how->sandbox_denied;
	r->timed_out = how->timed_out;
}

static void
closed(void *arg)
{
	((struct result *)arg)->over = true;
}

/* An error of the server is an answer, too. */
static void
failed(void *arg, int why, const char *message)
{
	struct result *r = arg;

	snprintf(r->error, sizeof(r->error), "%d: %s", why, message);
	r->over = true;
}

/* Writes the sandbox context of execd-protocol(7), where only the directory is
 * writable. Its name must need no escape in a URI. */
static void
write_sandbox(char *out, size_t size, const char *directory)
{
	snprintf(out, size,
	    "{\"permissions\":{\"type\":\"managed\",\"network\":\"restricted\","
	    "\"file_system\":{\"type\":\"restricted\",\"entries\":["
	    "{\"access\":\"read\",\"path\":{\"type\":\"special\","
	    "\"value\":{\"kind\":\"root\"}}},"
	    "{\"access\":\"write\",\"path\":{\"type\":\"special\","
	    "\"value\":{\"kind\":\"project_roots\"}}}]}},"
	    "\"cwd\":\"file://%s\",\"workspaceRoots\":[\"file://%s\"],"
	    "\"windowsSandboxLevel\":\"disabled\"}",
	    directory, directory);
}

/* A lost connection is resumed, and the loop does not notice. A lost session
 * ends it. */
static void
act(struct execd_client *c, const char *directory, const struct call *call,
    struct result *r)
{
	static const struct execd_process_events events = { .output = output,
		.exited = exited,
		.closed = closed,
		.failed = failed };
	struct execd_process *p;
	char sandbox[2048];

	write_sandbox(sandbox, sizeof(sandbox), directory);
	if (execd_process_start(c,
		&(struct execd_start){ .argv = (const char *[]){ "/bin/sh",
					   "-c", call->command, NULL },
		    .cwd = directory,
		    .sandbox = sandbox,
		    .pipe_stdin = call->input != NULL,
		    .timeout_ms = call->timeout_ms },
		&events, r, &p) < 0) {
		fprintf(stderr, "%s\n", execd_client_error(c));
		exit(125);
	}
	if (call->input != NULL) {
		execd_process_write(
		    p, call->input, strlen(call->input), NULL, NULL);
		execd_process_close_stdin(p);
	}
	while (!r->over)
		if (execd_client_run(c, -1) < 0) {
			fprintf(stderr, "%s\n", execd_client_error(c));
			exit(125);
		}
	execd_process_free(p);
}

int
main(int argc, char **argv)
{
	struct execd_environment server;
	struct execd_client *c;
	char *why;

	if (argc != 2 || strlen(argv[1]) > 500) {
		fprintf(stderr, "usage: agent_loop DIRECTORY\n");
		return 125;
	}
	if (execd_environment_find(NULL, &server, &why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 125;
	}
	signal(SIGPIPE, SIG_IGN); /* TLS writes to sockets */
	c = execd_client_new(&(struct execd_options){ .url = server.url,
	    .token = server.token,
	    .ca_file = server.ca_file });
	for (size_t i = 0; i < sizeof(script) / sizeof(script[0]); i++) {
		struct result r = { .code = -1 };

		act(c, argv[1], &script[i], &r);
		if (r.error[0] != '\0')
			printf("%s: %s\n", script[i].command, r.error);
		else
			printf("%s: %d%s%s\n%.*s", script[i].command, r.code,
			    r.denied ? ", denied" : "",
			    r.timed_out ? ", timed out" : "", (int)r.len,
			    r.output);
	}
	execd_client_free(c);
	execd_environment_clear(&server);
	return 0;
}
