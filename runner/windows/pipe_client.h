/* SPDX-License-Identifier: ISC */
/* The two named pipes of a parent, opened by its child. */
#ifndef PIPE_CLIENT_H
#define PIPE_CLIENT_H

#include <windows.h>

/*
 * Opens the pipe that the child reads and the one that it writes. If `maker` is
 * not NULL, that process must have made both. A failure is logged and ends the
 * program. The handles are open until then.
 */
void pipe_client_open(const WCHAR *in, const WCHAR *out, const ULONG *maker,
    HANDLE *reads, HANDLE *writes);

#endif
