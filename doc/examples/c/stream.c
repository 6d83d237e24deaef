/* SPDX-License-Identifier: ISC */
/*
 * Writes output as it comes, answers a question of the command, and tells how
 * it ended.
 *
 *	cc -o stream stream.c $(pkg-config --cflags --libs execd-client)
 */
#include <execd-client.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct execd_process *process;
static bool over;
static int code = 125;

/* A piece of output ends anywhere, so this waits for what the line is made of.
 */
static bool
is_question(const char *data, size_t len)
{
	static const char line[] = "working\n";
	static size_t seen;

	for (size_t i = 0; i < len && seen < strlen(line); i++)
		seen = data[i] == line[seen] ? seen + 1 : 0;
	return seen == strlen(line);
}

static void
output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	static bool answered;

	(void)arg;
	printf("%s %.*s", stream == EXECD_STDERR ? "stderr" : "stdout",
	    (int)len, (const char *)data);
	fflush(stdout);
	if (stream == EXECD_STDOUT && !answered && is_question(data, len)) {
		answered = true;
		execd_process_write(process, "yes\n", 4, NULL, NULL);
	}
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
	printf("it ended with %d\n", code);
	over = true;
}

static void
failed(void *arg, int why, const char *message)
{
	(void)arg;
	(void)why;
	fprintf(stderr, "%s\n", message);
	over = true;
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
	char *why;

	if (execd_environment_find(NULL, &server, &why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 125;
	}
	signal(SIGPIPE, SIG_IGN); /* TLS writes to sockets */
	c = execd_client_new(&(struct execd_options){ .url = server.url,
	    .token = server.token,
	    .ca_file = server.ca_file });
	if (execd_process_start(c,
		&(struct execd_start){
		    .argv = (const char *[]){ "/bin/sh", "-c",
			"echo working; echo a warning >&2; read answer; "
			"echo the answer was $answer; exit 3",
			NULL },
		    .pipe_stdin = true },
		&events, NULL, &process) < 0)
		failed(NULL, 0, execd_client_error(c));
	while (!over && execd_client_run(c, -1) == 0)
		continue;
	if (!over)
		failed(NULL, 0, execd_client_error(c));
	execd_client_free(c);
	execd_environment_clear(&server);
	return code;
}
