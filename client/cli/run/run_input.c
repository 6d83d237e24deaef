/* SPDX-License-Identifier: ISC */
/*
 * Sends standard input to the command. Each byte is sent once, and no more
 * writes are under way than the server queues.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "run.h"
#include "terminal.h"

#define READ_BYTES 32768
#define WRITES_MAX 32 /* under way; the peer blocks after 128 */

#define ESCAPE '~'

/* --- Answers ------------------------------------------------------------ */

static void
written(void *arg, const struct execd_answer *a)
{
	struct run *r = arg;

	r->writes--;
	/* A command that has ended takes no input; its end is reported
	 * anyway. */
	if (a->code != 0 && a->code != EXECD_CODE_LOST)
		execctl_tell(r->ctl, "input: %s", a->message);
	if (a->code != 0 || !json_is(json_get(a->result, "status"), "accepted"))
		r->in_ended = r->in_closed = true;
	run_input_update(r);
}

static void
close_input(struct run *r)
{
	if (r->in_closed)
		return;
	r->in_closed = true;
	execd_process_close_stdin(r->process);
}

/* --- Keys --------------------------------------------------------------- */

/* "~." at the start of a line makes execctl leave, even if the connection is
 * dead. Returns true for that. Removes the escape character from data[]. */
static bool
take_escapes(struct run *r, char *data, ssize_t *n)
{
	ssize_t to = 0;

	for (ssize_t i = 0; i < *n; i++) {
		char c = data[i];

		if (r->escaped && c == '.')
			return true;
		if (r->escaped && c != ESCAPE)
			data[to++] = ESCAPE; /* it was not an escape */
		if (!r->escaped && r->at_line_start && c == ESCAPE) {
			r->escaped = true;
			continue;
		}
		r->escaped = false;
		r->at_line_start = c == '\r' || c == '\n';
		data[to++] = c;
	}
	*n = to;
	return false;
}

static void
leave(struct run *r)
{
	terminal_restore();
	execctl_say("left with ~. while the command runs; session %s",
	    execd_client_session(r->ctl->client));
	r->left = true;
	r->ctl->ends = false;
	run_finish(r, EXIT_CTL_UNKNOWN);
}

/* --- Reading ------------------------------------------------------------ */

static void
ready(void *arg)
{
	struct run *r = arg;
	char data[READ_BYTES * 2];
	ssize_t n = read(r->in.fd, data, READ_BYTES);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0 && errno != EIO)
		execctl_say("standard input: %s", strerror(errno));
	if (n <= 0) {
		r->in_ended = true;
	} else if (r->input == RUN_INPUT_TTY && take_escapes(r, data, &n)) {
		leave(r);
		return;
	} else if (n > 0) {
		r->writes++;
		execd_process_write(r->process, data, (size_t)n, written, r);
	}
	run_input_update(r);
}

void
run_input_update(struct run *r)
{
	bool more = r->started && !r->in_ended && !r->done &&
		    r->writes < WRITES_MAX && r->input != RUN_INPUT_NONE;

	/* The terminal is read even while nothing is answered, so that ~.
	 * works. */
	if (r->input == RUN_INPUT_TTY && r->started && !r->done)
		more = !r->in_ended;
	if (r->in.added || more)
		source_set(r->ctl, &r->in, STDIN_FILENO, more ? POLLIN : 0);
	if (r->in_ended && r->input != RUN_INPUT_NONE && !r->done)
		close_input(r);
}

int
run_input_begin(struct run *r)
{
	int err;

	r->in.ready = ready;
	r->in.arg = r;
	if (r->input == RUN_INPUT_TTY) {
		err = terminal_raw();
		if (err < 0)
			return execctl_fail(r->ctl, EXIT_CTL_USAGE,
			    "-t needs a terminal as standard input: %s",
			    strerror(-err));
	}
	run_input_update(r);
	return 0;
}

void
run_input_end(struct run *r)
{
	source_remove(r->ctl, &r->in);
	terminal_restore();
}
