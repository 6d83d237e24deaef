/* SPDX-License-Identifier: ISC */
#include "pipe_end.h"

#include "frames.h"

/* No single write is longer. */
#define WRITE_BYTES (1u << 20)

/* Ends a call of ReadFile() or WriteFile() that said `done`. */
static DWORD
finish(const struct pipe_end *p, OVERLAPPED *o, BOOL done, DWORD *n)
{
	if (p->event != NULL && (done || GetLastError() == ERROR_IO_PENDING))
		done = GetOverlappedResult(p->handle, o, n, TRUE);
	return done ? ERROR_SUCCESS : GetLastError();
}

static DWORD
read_once(const struct pipe_end *p, void *to, DWORD n, DWORD *got)
{
	OVERLAPPED o = { .hEvent = p->event };

	return finish(p, &o,
	    ReadFile(p->handle, to, n, got, p->event != NULL ? &o : NULL), got);
}

static DWORD
write_once(const struct pipe_end *p, const void *from, DWORD n, DWORD *done)
{
	OVERLAPPED o = { .hEvent = p->event };

	return finish(p, &o,
	    WriteFile(p->handle, from, n, done, p->event != NULL ? &o : NULL),
	    done);
}

/* 0 bytes are an empty write of a pipe's other end, or the end of everything
 * else: only a pipe that is open can be looked into. */
DWORD
pipe_end_read_some(const struct pipe_end *p, void *to, DWORD n)
{
	DWORD got = 0;

	while (read_once(p, to, n, &got) == ERROR_SUCCESS)
		if (got > 0 ||
		    !PeekNamedPipe(p->handle, NULL, 0, NULL, NULL, NULL))
			return got;
	return 0;
}

size_t
pipe_end_read(const struct pipe_end *p, void *to, size_t n)
{
	size_t at = 0;
	DWORD got = 1;

	for (; at < n && got > 0; at += got)
		got = pipe_end_read_some(p, (char *)to + at, (DWORD)(n - at));
	return at;
}

DWORD
pipe_end_write(const struct pipe_end *p, const void *from, size_t n)
{
	const char *at = from;
	DWORD done = 0, err = ERROR_SUCCESS;

	for (; err == ERROR_SUCCESS && n > 0; at += done, n -= done)
		err = write_once(
		    p, at, n < WRITE_BYTES ? (DWORD)n : WRITE_BYTES, &done);
	return err;
}

enum frame_end
pipe_end_read_frame(const struct pipe_end *p, char **text, size_t *len)
{
	uint8_t head[FRAMES_HEADER_BYTES];
	struct buf_reader r;
	size_t n = pipe_end_read(p, head, sizeof(head));

	*text = NULL;
	if (n < sizeof(head))
		return n == 0 ? FRAME_NONE : FRAME_CUT;
	buf_reader_init(&r, head, sizeof(head));
	*len = buf_get_u32(&r);
	if (*len == 0)
		return FRAME_EMPTY;
	if (*len > FRAMES_MESSAGE_MAX)
		return FRAME_LONG;
	*text = xmalloc(*len);
	if (pipe_end_read(p, *text, *len) == *len)
		return FRAME_WHOLE;
	free(*text);
	*text = NULL;
	return FRAME_CUT;
}
