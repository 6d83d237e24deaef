/* SPDX-License-Identifier: ISC */
/*
 * execd-runner: one session of one user (execd-runner(8)). execd starts it with
 * its control channel on descriptor 3. Anybody may start it for one command in
 * the reference runner's dialect.
 */
#include <getopt.h>

#include "base.h"
#include "commands.h"
#include "config.h"
#include "dialect_frames.h"
#include "forward_copy.h"
#include "host_linux.h"
#include "loop.h"
#include "placeholder.h"
#include "process_tree.h"
#include "signals.h"

static const char usage_text[] =
    "usage: execd-runner                            (started by execd)\n"
    "       execd-runner --stdio\n"
    "       execd-runner --pipe-in PATH --pipe-out PATH\n";

enum { OPT_STDIO = 256, OPT_PIPE_IN, OPT_PIPE_OUT, OPT_FORWARD, OPT_VERSION };

static const struct option long_options[] = {
	{ "stdio", no_argument, NULL, OPT_STDIO },
	{ "pipe-in", required_argument, NULL, OPT_PIPE_IN },
	{ "pipe-out", required_argument, NULL, OPT_PIPE_OUT },
	{ "forward", no_argument, NULL, OPT_FORWARD },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

struct runner_options {
	bool stdio;
	bool forward; /* by a runner: copies for process/forward */
	const char *pipe_in, *pipe_out;
};

/* Returns -1 to go on, otherwise an exit code. */
static int
parse_options(struct runner_options *o, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		switch (opt) {
		case OPT_STDIO:
			o->stdio = true;
			break;
		case OPT_PIPE_IN:
			o->pipe_in = optarg;
			break;
		case OPT_PIPE_OUT:
			o->pipe_out = optarg;
			break;
		case OPT_FORWARD:
			o->forward = true;
			break;
		case OPT_VERSION:
			puts("execd-runner " EXECD_VERSION);
			return 0;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		default:
			fputs(usage_text, stderr);
			return 2;
		}
	}
	if (optind < argc || (o->pipe_in == NULL) != (o->pipe_out == NULL) ||
	    (o->stdio && o->pipe_in != NULL)) {
		fputs(usage_text, stderr);
		return 2;
	}
	return -1;
}

static struct event_base *
make_event_base(void)
{
	struct event_base *base = loop_new();

	loop_log(base);
	return base;
}

/* One command for one parent; without paths, on the standard descriptors. */
static int
run_frames(const char *in, const char *out)
{
	struct event_base *base;

	placeholders_begin_alone();
	base = make_event_base();
	if (in != NULL)
		host_linux_open_paths(base, in, out);
	else
		host_linux_open(base, STDIN_FILENO, STDOUT_FILENO);
	return (int)dialect_frames_run();
}

int
main(int argc, char **argv)
{
	struct runner_options o = { 0 };
	int code = parse_options(&o, argc, argv);

	if (code >= 0)
		return code;
	/*
	 * A program that is executed by descriptor would have the descriptor's
	 * number as its name.
	 */
	prctl(PR_SET_NAME, "execd-runner");
	log_init("execd-runner",
	    getenv("EXECD_DEBUG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	/* In these modes anybody starts it, and standard error is the caller's;
	 * in the others execd does, which resets signals. */
	if (o.stdio || o.pipe_in != NULL)
		reaper_reset_signals();
	else
		log_never_block();
	signals_ignore_unused(!o.stdio && o.pipe_in == NULL);
	if (o.forward)
		return forward_copy_run();
	if (o.stdio)
		return run_frames(NULL, NULL);
	if (o.pipe_in != NULL)
		return run_frames(o.pipe_in, o.pipe_out);
	placeholders_begin(false);
	if (placeholders_lists() < 0)
		placeholders_begin_alone();
	placeholders_clean();
	commands_run(make_event_base(), environ);
}
