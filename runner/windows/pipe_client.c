/* SPDX-License-Identifier: ISC */
#include "pipe_end.h"

/*
 * Of a pipe the maker must be able to see who we are and no more; otherwise
 * whoever made a pipe of this name first could act as our user.
 */
static HANDLE
open_pipe(const WCHAR *path, DWORD access)
{
	HANDLE h = CreateFileW(path, access, 0, NULL, OPEN_EXISTING,
	    SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, NULL);

	if (h == INVALID_HANDLE_VALUE)
		log_fatal("%ls: Windows error %lu", path, GetLastError());
	return h;
}

/* What the wrong process sends must not be run. It gets no answer, either. */
static void
check_maker(const WCHAR *path, HANDLE h, ULONG maker)
{
	ULONG pid;

	if (!GetNamedPipeServerProcessId(h, &pid))
		log_fatal("%ls: the process that made this pipe: Windows error "
			  "%lu",
		    path, GetLastError());
	if (pid != maker)
		log_fatal("%ls: process %lu made this pipe, and --server-pid "
			  "is %lu",
		    path, pid, maker);
}

/* Both pipes are opened before one is checked. Otherwise a parent would wait
 * for ever until the second one is opened. */
void
pipe_client_open(const WCHAR *in, const WCHAR *out, const ULONG *maker,
    HANDLE *reads, HANDLE *writes)
{
	*reads = open_pipe(in, GENERIC_READ);
	*writes = open_pipe(out, GENERIC_WRITE);
	if (maker == NULL)
		return;
	check_maker(in, *reads, *maker);
	check_maker(out, *writes, *maker);
}
