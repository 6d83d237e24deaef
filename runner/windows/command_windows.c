/* SPDX-License-Identifier: ISC */
/*
 * A running command on Windows. When it has ended, everything in its job is
 * killed, then its last output and its end are told, as on Linux.
 */
#include "base.h"
#include "buf.h"
#include "host_windows.h"
#include "start_windows.h"

/* One read; also the longest chunk. */
#define READ_BYTES (64u << 10)

/* What waits for a command that does not read. */
#define INPUT_MAX_BYTES (64u << 20)

/* How long the last output is waited for when nobody is left to write it. */
#define LAST_OUTPUT_MS 3000

/* The exit code of what is killed. */
#define KILLED_CODE 1

struct stream {
	struct command *command;
	HANDLE handle;
	HANDLE go; /* event: read the next chunk */
	bool is_stderr;
	bool open;
	bool held; /* a chunk waits, because the command is paused */
	DWORD len; /* 0: the end */
	uint8_t chunk[READ_BYTES];
};

struct command {
	struct started started;
	const struct command_events *on;
	struct stream streams[2];
	bool paused, ended, told, timed_out;
	DWORD exit_code;
	/* What the writing thread shares with us. */
	CRITICAL_SECTION lock;
	CONDITION_VARIABLE more;
	struct buf queue;
	size_t unwritten;
	bool closing; /* the thread closes the input after the queue */
	bool deaf;    /* the command reads no more */
};

static struct command the_command;

/* --- its end ------------------------------------------------------------ */

static void
settle(struct command *c)
{
	if (!c->ended || c->told || c->streams[0].open || c->streams[1].open)
		return;
	c->told = true;
	host_timer(TIMER_LAST_OUTPUT, 0, NULL, NULL);
	c->on->closed(c->exit_code, c->timed_out);
}

/* Nobody is left to write; a console that does not end is not waited for. */
static void
last_output_cb(void *arg)
{
	struct command *c = arg;

	if (c->paused) {
		host_timer(
		    TIMER_LAST_OUTPUT, LAST_OUTPUT_MS, last_output_cb, c);
		return;
	}
	log_warn(0, "the output did not end within %d ms after the command",
	    LAST_OUTPUT_MS);
	c->streams[0].open = c->streams[1].open = false;
	settle(c);
}

/* It waits until its output is read, so it has a thread of its own. */
static DWORD WINAPI
close_console_thread(void *arg)
{
	struct command *c = arg;

	ClosePseudoConsole(c->started.console);
	return 0;
}

static void
on_ended(void *arg)
{
	struct command *c = arg;

	if (!GetExitCodeProcess(c->started.process, &c->exit_code))
		log_fatal("exit code: Windows error %lu", GetLastError());
	c->ended = true;
	host_timer(TIMER_TIMEOUT, 0, NULL, NULL);
	command_kill_tree(c);
	if (c->started.console != NULL)
		host_thread(close_console_thread, c);
	host_timer(TIMER_LAST_OUTPUT, LAST_OUTPUT_MS, last_output_cb, c);
	settle(c);
}

static DWORD WINAPI
wait_thread(void *arg)
{
	struct command *c = arg;

	WaitForSingleObject(c->started.process, INFINITE);
	host_post(on_ended, c);
	return 0;
}

static void
timeout_cb(void *arg)
{
	struct command *c = arg;

	if (c->ended ||
	    WaitForSingleObject(c->started.process, 0) == WAIT_OBJECT_0)
		return;
	c->timed_out = true;
	command_kill_tree(c);
}

/* --- its output --------------------------------------------------------- */

static void
tell_chunk(struct stream *s)
{
	struct command *c = s->command;

	s->held = false;
	if (s->len > 0 && s->open && !c->told) {
		c->on->output(s->is_stderr, s->chunk, s->len);
		SetEvent(s->go);
		return;
	}
	s->open = false;
	settle(c);
}

static void
on_chunk(void *arg)
{
	struct stream *s = arg;

	s->held = true;
	if (!s->command->paused)
		tell_chunk(s);
}

/* Returns 0 at the end. An empty write of the command is read as 0 bytes. */
static DWORD
read_chunk(struct stream *s)
{
	DWORD n = 0;

	while (n == 0)
		if (!ReadFile(s->handle, s->chunk, sizeof(s->chunk), &n, NULL))
			return 0;
	return n;
}

static DWORD WINAPI
read_stream_thread(void *arg)
{
	struct stream *s = arg;

	do {
		s->len = read_chunk(s);
		host_post(on_chunk, s);
		WaitForSingleObject(s->go, INFINITE);
	} while (s->len > 0);
	return 0;
}

void
command_pause(struct command *c, bool paused)
{
	c->paused = paused;
	for (size_t i = 0; i < nitems(c->streams) && !c->paused; i++)
		if (c->streams[i].held)
			tell_chunk(&c->streams[i]);
}

static void
open_stream(struct command *c, size_t i, HANDLE handle)
{
	struct stream *s = &c->streams[i];

	s->command = c;
	s->handle = handle;
	s->is_stderr = i == 1;
	s->open = handle != NULL;
	s->go = CreateEventW(NULL, FALSE, FALSE, NULL);
	if (s->go == NULL)
		log_fatal("event: Windows error %lu", GetLastError());
	if (s->open)
		host_thread(read_stream_thread, s);
}

/* --- its input ---------------------------------------------------------- */

/* Takes the queue; returns false at the end of the input. */
static bool
take_queue(struct command *c, struct buf *mine)
{
	bool some;

	EnterCriticalSection(&c->lock);
	while (c->queue.len == 0 && !c->closing)
		SleepConditionVariableCS(&c->more, &c->lock, INFINITE);
	buf_clear(mine);
	*mine = c->queue;
	buf_init(&c->queue, INPUT_MAX_BYTES);
	some = mine->len > 0;
	LeaveCriticalSection(&c->lock);
	return some;
}

static void
note_written(struct command *c, size_t n, bool taken)
{
	EnterCriticalSection(&c->lock);
	c->unwritten -= n;
	c->deaf |= !taken;
	LeaveCriticalSection(&c->lock);
}

/* Small pieces, so that a full pipe shows how much was taken. */
static bool
write_input(struct command *c, const struct buf *b)
{
	DWORD n = 0;

	for (size_t at = 0; at < b->len; at += n) {
		size_t left = b->len - at;
		bool taken = WriteFile(c->started.in, b->data + at,
		    left < READ_BYTES ? (DWORD)left : READ_BYTES, &n, NULL);

		note_written(c, taken ? n : left, taken);
		if (!taken)
			return false;
	}
	return true;
}

/* The input of a console stays open for its life. */
static DWORD WINAPI
write_thread(void *arg)
{
	struct command *c = arg;
	struct buf mine;

	buf_init(&mine, INPUT_MAX_BYTES);
	while (take_queue(c, &mine))
		if (!write_input(c, &mine))
			break;
	if (c->started.console == NULL)
		CloseHandle(c->started.in);
	return 0;
}

bool
command_write(struct command *c, struct slice data)
{
	bool room;

	EnterCriticalSection(&c->lock);
	room = c->deaf || c->closing || c->ended || c->started.in == NULL ||
	       data.len <= INPUT_MAX_BYTES - c->unwritten;
	if (room && !c->deaf && !c->closing && !c->ended &&
	    c->started.in != NULL) {
		buf_put(&c->queue, data.ptr, data.len);
		c->unwritten += data.len;
		WakeConditionVariable(&c->more);
	}
	LeaveCriticalSection(&c->lock);
	return room;
}

/* Ctrl-Z at the beginning of a line ends what a console reads. */
bool
command_end_input(struct command *c)
{
	if (c->started.console != NULL)
		return command_write(c, SLICE("\x1a\r"));
	EnterCriticalSection(&c->lock);
	c->closing = true;
	WakeConditionVariable(&c->more);
	LeaveCriticalSection(&c->lock);
	return true;
}

/* --- the rest ----------------------------------------------------------- */

struct command *
command_start(const struct command_request *r, const struct command_events *on,
    struct command_error *e)
{
	struct command *c = &the_command;

	if (!start_windows(r, &c->started, e))
		return NULL;
	c->on = on;
	InitializeCriticalSection(&c->lock);
	InitializeConditionVariable(&c->more);
	buf_init(&c->queue, INPUT_MAX_BYTES);
	if (c->started.in != NULL)
		host_thread(write_thread, c);
	open_stream(c, 0, c->started.out);
	open_stream(c, 1, c->started.err);
	host_thread(wait_thread, c);
	if (r->asked->has_timeout)
		host_timer(TIMER_TIMEOUT, r->asked->timeout_ms, timeout_cb, c);
	return c;
}

int64_t
command_id(const struct command *c)
{
	return c->started.pid;
}

int
command_resize(struct command *c, uint16_t rows, uint16_t cols)
{
	const COORD size = { (SHORT)cols, (SHORT)rows };

	if (c->started.console == NULL)
		return -ENOTTY;
	if (c->ended)
		return 0;
	return SUCCEEDED(ResizePseudoConsole(c->started.console, size)) ? 0
									: -EIO;
}

void
command_kill_tree(struct command *c)
{
	if (!TerminateJobObject(c->started.job, KILLED_CODE))
		log_error(
		    0, "TerminateJobObject: Windows error %lu", GetLastError());
}

/* The program ends next, and closes the job with everything else. */
void
command_free(struct command *c)
{
	if (c != NULL && !c->ended)
		command_kill_tree(c);
}
