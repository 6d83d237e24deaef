/* SPDX-License-Identifier: ISC */
#include "tar_process.h"

#define PIECE_BYTES (256u << 10)
#define WRITES_MAX  16 /* pieces under way; servers queue 8 MiB */
#define END_MS	    2000

static void
say(struct tar_process *t, const char *text, size_t len)
{
	size_t room = sizeof(t->words) - 1 - t->nwords;

	len = len < room ? len : room;
	memcpy(t->words + t->nwords, text, len);
	t->nwords += len;
}

void
tar_process_break(struct tar_process *t, const char *why)
{
	say(t, why, strlen(why));
	t->broken = true;
}

const char *
tar_process_why(struct tar_process *t)
{
	_cleanup_free_ char *status = xasprintf("exit status %d", t->code);

	while (t->nwords > 0 && t->words[t->nwords - 1] == '\n')
		t->words[--t->nwords] = '\0';
	if (t->nwords == 0)
		say(t, status, strlen(status));
	return t->words;
}

/* --- Events -------------------------------------------------------------- */

static void
on_started(void *arg, const char *sandbox_type)
{
	struct tar_process *t = arg;

	(void)sandbox_type;
	t->started = true;
}

static void
on_output(void *arg, enum execd_stream stream, const void *data, size_t len)
{
	struct tar_process *t = arg;

	if (stream != EXECD_STDOUT)
		say(t, data, len);
	else if (!t->broken)
		t->output(t->arg, data, len);
}

/* Without all bytes the rest of a stream means nothing. */
static void
on_gap(void *arg, uint64_t events, uint64_t bytes)
{
	(void)events;
	(void)bytes;
	tar_process_break(arg, "the server kept too little of its output");
}

static void
on_exited(void *arg, const struct execd_exit *how)
{
	struct tar_process *t = arg;

	t->code = how->code;
}

static void
on_closed(void *arg)
{
	struct tar_process *t = arg;

	t->over = true;
}

static void
on_failed(void *arg, int code, const char *message)
{
	struct tar_process *t = arg;

	t->code = code;
	t->over = true;
	tar_process_break(t, message);
}

static void
on_written(void *arg, const struct execd_answer *a)
{
	struct tar_process *t = arg;

	t->writes--;
	if (a->code != 0 || !json_is(json_get(a->result, "status"), "accepted"))
		t->broken = true;
}

/* --- Its life --------------------------------------------------------------
 */

void
tar_process_init(struct tar_process *t, struct copy *c,
    void (*output)(void *arg, const void *data, size_t len), void *arg)
{
	*t = (struct tar_process){ .copy = c, .output = output, .arg = arg };
	buf_init(&t->out, SIZE_MAX / 2);
}

bool
tar_process_goes_on(const struct tar_process *t)
{
	return !t->broken && !t->over && !t->copy->stop;
}

/* No path is in its words: the server may know places by other names. */
void
tar_process_start(struct tar_process *t, const char *directory,
    const char *first, const char *const *options)
{
	static const struct execd_process_events events = {
		.started = on_started,
		.output = on_output,
		.gap = on_gap,
		.exited = on_exited,
		.closed = on_closed,
		.failed = on_failed,
	};
	static const char *const env[] = { "LC_ALL=C", "TAR_OPTIONS=", NULL };
	_cleanup_free_ char *script =
	    xasprintf("case $(tar --version 2>/dev/null) in *'GNU tar'*) ;;"
		      " *) echo 'there is no GNU tar' >&2; exit 127 ;; esac\n"
		      "%s\nexec tar \"$@\"",
		first);
	const char *argv[TAR_OPTIONS_MAX + 5] = { "/bin/sh", "-c", script,
		"sh" };
	struct execd_start start = {
		.argv = argv,
		.cwd = directory,
		.env = env,
		.pipe_stdin = true,
		.wait_output = true,
		.sandbox = files_sandbox_text(),
	};
	size_t n = 0;
	int err;

	for (; n < TAR_OPTIONS_MAX && options[n] != NULL; n++)
		argv[n + 4] = options[n];
	err = execd_process_start(
	    t->copy->ctl->client, &start, &events, t, &t->process);
	if (err < 0)
		tar_process_break(t, strerror(-err));
	while (!t->started && tar_process_goes_on(t))
		loop_once(t->copy->ctl);
}

static void
send_piece(struct tar_process *t, size_t at, size_t n)
{
	while (tar_process_goes_on(t) && t->writes >= WRITES_MAX)
		loop_once(t->copy->ctl);
	if (!tar_process_goes_on(t))
		return;
	t->writes++;
	execd_process_write(t->process, t->out.data + at, n, on_written, t);
}

void
tar_process_send(struct tar_process *t)
{
	size_t at = 0;

	for (; t->out.len - at >= PIECE_BYTES; at += PIECE_BYTES)
		send_piece(t, at, PIECE_BYTES);
	buf_consume(&t->out, at);
}

void
tar_process_flush(struct tar_process *t)
{
	tar_process_send(t);
	if (t->out.len > 0)
		send_piece(t, 0, t->out.len);
	buf_consume(&t->out, t->out.len);
}

bool
tar_process_end(struct tar_process *t)
{
	tar_process_flush(t);
	if (tar_process_goes_on(t))
		execd_process_close_stdin(t->process);
	while (tar_process_goes_on(t))
		loop_once(t->copy->ctl);
	return t->over && !t->broken && t->code == 0;
}

static void
fire_late(void *arg)
{
	*(bool *)arg = true;
}

static void
kill_it(struct tar_process *t)
{
	struct execctl *ctl = t->copy->ctl;
	bool late = false;
	struct timer timer = { .fire = fire_late, .arg = &late };

	execd_process_terminate(t->process, 0);
	timer_set(ctl, &timer, END_MS);
	while (
	    !t->over && !late && execd_client_state(ctl->client) != EXECD_OVER)
		loop_once(ctl);
	timer_remove(ctl, &timer);
}

void
tar_process_clear(struct tar_process *t)
{
	if (t->process != NULL && !t->over)
		kill_it(t);
	execd_process_free(t->process);
	buf_clear(&t->out);
}
