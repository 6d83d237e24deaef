/* SPDX-License-Identifier: ISC */
/* Bytes and frames over one end of a pipe. Every call blocks. */
#pragma once

#include <windows.h>

#include "base.h"

struct pipe_end {
	HANDLE handle;
	HANDLE event; /* of an overlapped handle; NULL: it is none */
};

/* Reads n bytes. Returns how many came before the end. */
size_t pipe_end_read(const struct pipe_end *p, void *to, size_t n);

/* Reads what is there, but waits for the first byte. Returns 0 at the end. */
DWORD pipe_end_read_some(const struct pipe_end *p, void *to, DWORD n);

/* Writes all n bytes. Returns ERROR_SUCCESS or the error of Windows. */
DWORD pipe_end_write(const struct pipe_end *p, const void *from, size_t n);

enum frame_end { FRAME_WHOLE, FRAME_NONE, FRAME_CUT, FRAME_EMPTY, FRAME_LONG };

/* Reads a frame without its header into *text[*len], which the caller frees. It
 * is NULL unless the frame is whole. */
enum frame_end pipe_end_read_frame(
    const struct pipe_end *p, char **text, size_t *len);

/* --- as a child --------------------------------------------------------- */

/* The two named pipes of a parent, opened by its child. */

/*
 * Opens the pipe that the child reads and the one that it writes. If `maker` is
 * not NULL, that process must have made both. A failure is logged and ends the
 * program. The handles are open until then.
 */
void pipe_client_open(const WCHAR *in, const WCHAR *out, const ULONG *maker,
    HANDLE *reads, HANDLE *writes);
