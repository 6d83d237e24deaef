/* SPDX-License-Identifier: ISC */
/*
 * A program that knows libexecd-client by its header only: runs a command and
 * ends with its status.
 */
#include <execd-client.h>

#include <stdio.h>

static int code = -1;

/* Names that the library has, too, but keeps to itself. */
void xmalloc(void);
void log_error(void);

void
xmalloc(void)
{
}

void
log_error(void)
{
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
	code = how->code;
	(void)arg;
}

static void
closed(void *arg)
{
	*(int *)arg = 1;
}

static void
failed(void *arg, int why, const char *message)
{
	fprintf(stderr, "%d: %s\n", why, message);
	*(int *)arg = 1;
}

int
main(int argc, char **argv)
{
	const char *command[] = { "/bin/sh", "-c",
		"echo from the library; exit 5", NULL };
	struct execd_process_events events = { .output = output,
		.exited = exited,
		.closed = closed,
		.failed = failed };
	struct execd_options options = { .url = argv[argc > 1] };
	struct execd_client *c = execd_client_new(&options);
	struct execd_start start = { .argv = command, .cwd = "/" };
	struct execd_process *p;
	int over = 0;

	if (execd_process_start(c, &start, &events, &over, &p) < 0)
		fprintf(stderr, "%s\n", execd_client_error(c));
	else
		while (!over && execd_client_run(c, -1) == 0)
			continue;
	execd_client_free(c);
	return code;
}
