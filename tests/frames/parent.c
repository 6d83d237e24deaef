/* SPDX-License-Identifier: ISC */
/*
 * A parent for runners of Windows, for tests: makes a desktop and two named
 * pipes, starts the runner on them and copies between the pipes and its own
 * standard input and output.
 *
 *	parent.exe DESKTOP RUNNER.EXE [ARGUMENT...]
 *
 * At the end it says on standard error with which code the runner ended. Its
 * own status is no measure: Wine kills a process that takes half a second to
 * leave, and tells the low byte only. DESKTOP "-" makes none, and
 * STATION\DESKTOP a window station, too. The argument PID becomes the parent's
 * process id.
 */
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include <windows.h>

#define PIPE_BYTES (1 << 16)

static HANDLE to_runner, from_runner;

static void
fail(const char *what)
{
	fprintf(
	    stderr, "parent: %s: Windows error %lu\n", what, GetLastError());
	exit(99);
}

static HANDLE
make_pipe(WCHAR *name, const WCHAR *end, DWORD access)
{
	HANDLE h;

	swprintf(name, MAX_PATH, L"\\\\.\\pipe\\execd-test-%lu-%ls",
	    GetCurrentProcessId(), end);
	h = CreateNamedPipeW(name, access | FILE_FLAG_FIRST_PIPE_INSTANCE,
	    PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT |
		PIPE_REJECT_REMOTE_CLIENTS,
	    1, PIPE_BYTES, PIPE_BYTES, 0, NULL);
	if (h == INVALID_HANDLE_VALUE)
		fail("CreateNamedPipe");
	return h;
}

static DWORD
copy(HANDLE from, HANDLE to)
{
	static __thread char bytes[PIPE_BYTES];
	DWORD n, done;

	while (ReadFile(from, bytes, sizeof(bytes), &n, NULL) && n > 0)
		for (DWORD at = 0; at < n; at += done)
			if (!WriteFile(to, bytes + at, n - at, &done, NULL))
				return GetLastError();
	return GetLastError();
}

static DWORD WINAPI
input_thread(void *arg)
{
	copy(GetStdHandle(STD_INPUT_HANDLE), to_runner);
	FlushFileBuffers(to_runner);
	CloseHandle(to_runner);
	return 0;
}

static void
wait_for(HANDLE pipe)
{
	if (ConnectNamedPipe(pipe, NULL))
		return;
	/* The other end came already; or it came and went. */
	if (GetLastError() != ERROR_PIPE_CONNECTED &&
	    GetLastError() != ERROR_NO_DATA)
		fail("ConnectNamedPipe");
}

/* Returns the desktop of the runner, or NULL for that of the parent. */
static WCHAR *
make_desktop(WCHAR *name)
{
	WCHAR *slash = wcschr(name, L'\\');
	HWINSTA station;

	if (slash != NULL) {
		*slash = 0;
		station = CreateWindowStationW(name, 0, GENERIC_ALL, NULL);
		if (station == NULL || !SetProcessWindowStation(station))
			fail("CreateWindowStation");
		*slash = L'\\';
	}
	if (wcscmp(name, L"-") != 0 &&
	    CreateDesktopW(slash != NULL ? slash + 1 : name, NULL, NULL, 0,
		GENERIC_ALL, NULL) == NULL)
		fail("CreateDesktop");
	return slash != NULL ? name : NULL;
}

/* The tests give arguments that need no quotes. */
static HANDLE
start(int argc, WCHAR **argv, const WCHAR *in, const WCHAR *out)
{
	STARTUPINFOW info = { .cb = sizeof(info),
		.lpDesktop = make_desktop(argv[1]) };
	PROCESS_INFORMATION made;
	WCHAR line[4096];
	size_t at;

	at = (size_t)swprintf(line, 4096, L"\"%ls\"", argv[2]);
	for (int i = 3; i < argc; i++)
		at += !wcscmp(argv[i], L"PID")
			  ? (size_t)swprintf(line + at, 4096 - at, L" %lu",
				GetCurrentProcessId())
			  : (size_t)swprintf(
				line + at, 4096 - at, L" %ls", argv[i]);
	swprintf(
	    line + at, 4096 - at, L" --pipe-in=%ls --pipe-out=%ls", in, out);
	if (!CreateProcessW(
		argv[2], line, NULL, NULL, FALSE, 0, NULL, NULL, &info, &made))
		fail("CreateProcess");
	return made.hProcess;
}

/*
 * A runner that ends early must not be waited for at a pipe that it never
 * opened. The parent opens it in its place. A pipe that the runner has opened
 * has no second instance, so nothing happens to it.
 */
struct early_end {
	HANDLE runner;
	const WCHAR *in, *out;
};

static DWORD WINAPI
early_end_thread(void *arg)
{
	const struct early_end *e = arg;

	WaitForSingleObject(e->runner, INFINITE);
	CloseHandle(
	    CreateFileW(e->in, GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL));
	CloseHandle(CreateFileW(
	    e->out, GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL));
	return 0;
}

int wmain(int argc, WCHAR **argv);

int
wmain(int argc, WCHAR **argv)
{
	WCHAR in[MAX_PATH], out[MAX_PATH];
	struct early_end e = { NULL, in, out };
	HANDLE runner;
	DWORD code;

	if (argc < 3)
		return 98;
	to_runner = make_pipe(in, L"in", PIPE_ACCESS_OUTBOUND);
	from_runner = make_pipe(out, L"out", PIPE_ACCESS_INBOUND);
	e.runner = runner = start(argc, argv, in, out);
	CloseHandle(CreateThread(NULL, 0, early_end_thread, &e, 0, NULL));
	wait_for(to_runner);
	wait_for(from_runner);
	CloseHandle(CreateThread(NULL, 0, input_thread, NULL, 0, NULL));
	copy(from_runner, GetStdHandle(STD_OUTPUT_HANDLE));
	WaitForSingleObject(runner, INFINITE);
	GetExitCodeProcess(runner, &code);
	fprintf(stderr, "parent: the runner ended with %lu\n", code);
	ExitProcess(0);
}
