/* SPDX-License-Identifier: ISC */
/*
 * The parent on Windows: frames over two handles that block. One thread reads,
 * one frame at a time; another writes what is composed.
 */
#include <errno.h>
#include <string.h>

#include "buf.h"
#include "host_windows.h"
#include "log.h"
#include "parent_windows.h"
#include "util.h"

/* With this much unwritten, nothing more is read from the command. */
#define CONGESTED_BYTES (1u << 20)

/* Far more than the largest frames of one turn. */
#define OUT_MAX_BYTES (256u << 20)

#define HEADER_BYTES 4

static struct {
	const struct parent_events *on;
	HANDLE in, out;
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

enum read_end { READ_FRAME, READ_CLEAN_END, READ_CUT, READ_EMPTY, READ_LONG };

struct incoming {
	enum read_end end;
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
	case READ_FRAME:
		parent.on->message(in->text, in->len);
		break;
	case READ_CLEAN_END:
	case READ_CUT:
		parent.on->ended(in->end == READ_CUT);
		break;
	case READ_EMPTY:
		parent.on->broken(-EBADMSG);
		break;
	case READ_LONG:
		parent.on->broken(-EMSGSIZE);
		break;
	}
	free(in->text);
	in->text = NULL;
	SetEvent(parent.taken);
}

/* Returns how many bytes came before the end; fewer than n at the end only. */
static size_t
read_all(char *p, size_t n)
{
	size_t at = 0;
	DWORD got;

	/* A pipe of bytes may say 0 for an empty write of its other end. */
	while (at < n &&
	       ReadFile(parent.in, p + at, (DWORD)(n - at), &got, NULL) &&
	       got > 0)
		at += got;
	return at;
}

static enum read_end
read_frame(struct incoming *in)
{
	uint8_t head[HEADER_BYTES];
	struct buf_reader r;
	size_t n = read_all((char *)head, sizeof(head));

	in->text = NULL;
	if (n < sizeof(head))
		return n == 0 ? READ_CLEAN_END : READ_CUT;
	buf_reader_init(&r, head, sizeof(head));
	in->len = buf_get_u32(&r);
	if (in->len == 0)
		return READ_EMPTY;
	if (in->len > FRAMES_MESSAGE_MAX)
		return READ_LONG;
	in->text = xmalloc(in->len);
	return read_all(in->text, in->len) == in->len ? READ_FRAME : READ_CUT;
}

static DWORD WINAPI
read_thread(void *arg)
{
	static struct incoming in;

	do {
		in.end = read_frame(&in);
		host_post(on_incoming, &in);
		WaitForSingleObject(parent.taken, INFINITE);
	} while (in.end == READ_FRAME);
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

static DWORD
write_all(const uint8_t *p, size_t n)
{
	DWORD done;

	for (; n > 0; p += done, n -= done)
		if (!WriteFile(parent.out, p,
			n < (1u << 20) ? (DWORD)n : 1u << 20, &done, NULL))
			return GetLastError();
	return ERROR_SUCCESS;
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
		err = write_all(mine.data, mine.len);
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
	size_t len = b->len - HEADER_BYTES;

	for (size_t i = 0; i < HEADER_BYTES; i++)
		b->data[i] = (uint8_t)(len >> (8 * i));
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
	parent.in = in;
	parent.out = out;
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
