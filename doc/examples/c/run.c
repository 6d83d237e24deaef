/* SPDX-License-Identifier: ISC */
/*
 * Runs a command in a sandbox: run DIRECTORY COMMAND
 *
 *	cc -o run run.c $(pkg-config --cflags --libs execd-client)
 */
#include <execd-client.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The command may write to the directory (%s), /tmp and TMPDIR. There is no
 * network. */
#define SANDBOX                                                                \
	"{\"permissions\":{\"type\":\"managed\",\"network\":\"restricted\","   \
	"\"file_system\":{\"type\":\"restricted\",\"entries\":["               \
	"{\"access\":\"read\",\"path\":{\"type\":\"special\","                 \
	"\"value\":{\"kind\":\"root\"}}},"                                     \
	"{\"access\":\"write\",\"path\":{\"type\":\"special\","                \
	"\"value\":{\"kind\":\"project_roots\"}}},"                            \
	"{\"access\":\"write\",\"path\":{\"type\":\"special\","                \
	"\"value\":{\"kind\":\"slash_tmp\"}}},"                                \
	"{\"access\":\"write\",\"path\":{\"type\":\"special\","                \
	"\"value\":{\"kind\":\"tmpdir\"}}}]}},"                                \
	"\"cwd\":\"file://%s\",\"workspaceRoots\":[\"file://%s\"],"            \
	"\"windowsSandboxLevel\":\"disabled\"}"

static bool over;
static int code = 125;

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
	over = true;
}

int
main(int argc, char **argv)
{
	static const struct execd_process_events events = { .output = output,
		.exited = exited,
		.closed = closed,
		.failed = failed };
	struct execd_environment server;
	struct execd_client *c;
	struct execd_process *p;
	char sandbox[2048];
	char *why;

	/* A name with one of these would need an escape in the URI. */
	if (argc != 3 || argv[1][0] != '/' || strlen(argv[1]) > 500 ||
	    strpbrk(argv[1], "%?#\\\" ") != NULL) {
		fprintf(stderr, "usage: run DIRECTORY COMMAND\n");
		return 125;
	}
	/* The server of EXECD_URL, or the default of environments.conf. */
	if (execd_environment_find(NULL, &server, &why) < 0) {
		fprintf(stderr, "%s\n", why);
		return 125;
	}
	signal(SIGPIPE, SIG_IGN); /* TLS writes to sockets */
	c = execd_client_new(&(struct execd_options){ .url = server.url,
	    .token = server.token,
	    .ca_file = server.ca_file });
	snprintf(sandbox, sizeof(sandbox), SANDBOX, argv[1], argv[1]);
	if (execd_process_start(c,
		&(struct execd_start){
		    .argv = (const char *[]){ "/bin/sh", "-c", argv[2], NULL },
		    .cwd = argv[1],
		    .sandbox = sandbox },
		&events, NULL, &p) < 0)
		failed(NULL, 0, execd_client_error(c));
	while (!over && execd_client_run(c, -1) == 0)
		continue;
	if (!over)
		failed(NULL, 0, execd_client_error(c));
	execd_client_free(c);
	execd_environment_clear(&server);
	return code;
}
