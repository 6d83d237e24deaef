/* SPDX-License-Identifier: ISC */
/*
 * The parent on Windows: frames over two handles that block. One thread reads,
 * one frame at a time; another writes what is composed.
 */

#include "base.h"
#include "buf.h"
#include "host_windows.h"
#include "pipe_end.h"

/* With this much unwritten, nothing more is read from the command. */
#define CONGESTED_BYTES (1u << 20)

/* Far more than the largest frames of one turn. */
#define OUT_MAX_BYTES (256u << 20)

static struct {
	const struct parent_events *on;
	struct pipe_end in, out;
	HANDLE taken; /* event: the frame was taken, read the next */
	bool stopped; /* takes no more frames */
	struct buf composed;
	/* What the writing thread shares with us. */
	CRITICAL_SECTION lock;
	CONDITION_VARIABLE more;
	struct buf queue;
	size_t unwritten; /* in the queue, and in the thread's hands */
	bool lost;	  /* the parent takes nothing any more */
	bool congested;
} parent;

/* --- reading ------------------------------------------------------------ */

struct incoming {
	enum frame_end end;
	size_t len;
	char *text; /* owned */
};

static void
on_incoming(void *arg)
{
	struct incoming *in = arg;

	if (parent.stopped)
		return;
	switch (in->end) {
	case FRAME_WHOLE:
		parent.on->message(in->text, in->len);
		break;
	case FRAME_NONE:
	case FRAME_CUT:
		parent.on->ended(in->end == FRAME_CUT);
		break;
	case FRAME_EMPTY:
		parent.on->broken(-EBADMSG);
		break;
	case FRAME_LONG:
		parent.on->broken(-EMSGSIZE);
		break;
	}
	free(in->text);
	in->text = NULL;
	SetEvent(parent.taken);
}

static DWORD WINAPI
read_thread(void *arg)
{
	static struct incoming in;

	do {
		in.end = pipe_end_read_frame(&parent.in, &in.text, &in.len);
		host_post(on_incoming, &in);
		WaitForSingleObject(parent.taken, INFINITE);
	} while (in.end == FRAME_WHOLE);
	return 0;
}

void
parent_stop_reading(void)
{
	parent.stopped = true;
}

/* --- writing ------------------------------------------------------------ */

static void
on_written(void *arg)
{
	bool was = parent.congested;

	EnterCriticalSection(&parent.lock);
	parent.congested = parent.unwritten > 0 && was;
	LeaveCriticalSection(&parent.lock);
	if (was && !parent.congested && !parent.stopped)
		parent.on->drained();
}

static void
on_lost(void *arg)
{
	log_error(0, "the parent's pipe: Windows error %lu",
	    (unsigned long)(ULONG_PTR)arg);
	if (!parent.stopped)
		parent.on->broken(-EPIPE);
}

static DWORD WINAPI
write_thread(void *arg)
{
	struct buf mine;
	DWORD err = ERROR_SUCCESS;

	buf_init(&mine, OUT_MAX_BYTES);
	while (err == ERROR_SUCCESS) {
		EnterCriticalSection(&parent.lock);
		while (parent.queue.len == 0)
			SleepConditionVariableCS(
			    &parent.more, &parent.lock, INFINITE);
		buf_clear(&mine);
		mine = parent.queue;
		buf_init(&parent.queue, OUT_MAX_BYTES);
		LeaveCriticalSection(&parent.lock);
		err = pipe_end_write(&parent.out, mine.data, mine.len);
		EnterCriticalSection(&parent.lock);
		parent.unwritten -= mine.len;
		parent.lost = err != ERROR_SUCCESS;
		LeaveCriticalSection(&parent.lock);
		host_post(on_written, NULL);
	}
	host_post(on_lost, (void *)(ULONG_PTR)err);
	return 0;
}

struct json_writer
parent_begin(void)
{
	struct json_writer w;

	buf_clear(&parent.composed);
	buf_put_u32(&parent.composed, 0);
	json_writer_init(&w, &parent.composed);
	return w;
}

/* The header is written when the length is known. */
void
parent_send(void)
{
	struct buf *b = &parent.composed;

	frames_set_length(b);
	EnterCriticalSection(&parent.lock);
	if (!parent.lost) {
		buf_put(&parent.queue, b->data, b->len);
		parent.unwritten += b->len;
		if (parent.queue.failed)
			log_fatal("the parent reads nothing: %zu bytes wait",
			    parent.unwritten);
	}
	parent.congested |= parent.unwritten > CONGESTED_BYTES;
	WakeConditionVariable(&parent.more);
	LeaveCriticalSection(&parent.lock);
}

bool
parent_congested(void)
{
	return parent.congested;
}

bool
parent_is_drained(void)
{
	bool drained;

	EnterCriticalSection(&parent.lock);
	drained = parent.unwritten == 0 || parent.lost;
	LeaveCriticalSection(&parent.lock);
	return drained;
}

/* --- both --------------------------------------------------------------- */

void
parent_windows_at(HANDLE in, HANDLE out)
{
	parent.in.handle = in;
	parent.out.handle = out;
	parent.taken = CreateEventW(NULL, FALSE, FALSE, NULL);
	if (parent.taken == NULL)
		log_fatal("event: Windows error %lu", GetLastError());
	InitializeCriticalSection(&parent.lock);
	InitializeConditionVariable(&parent.more);
	buf_init(&parent.composed, OUT_MAX_BYTES);
	buf_init(&parent.queue, OUT_MAX_BYTES);
}

void
parent_open(const struct parent_events *on)
{
	parent.on = on;
	host_thread(read_thread, NULL);
	host_thread(write_thread, NULL);
}
