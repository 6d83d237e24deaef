/* SPDX-License-Identifier: ISC */
/*
 * Measures what Windows would enforce and Wine does not. Each word tries one
 * thing and writes what happened as lines; on Windows they would be others.
 *
 *	wine.exe objects	a pipe, a desktop and an event that nobody may
 *				open, and another process that opens them
 *	wine.exe open		is that other process
 *	wine.exe logon		a user who is not there logs on
 *	wine.exe event		sends Ctrl-C to its own console
 *	wine.exe console	tells on CON what comes to a console: bytes,
 *				events, its size; "q" ends it
 */
#include <stdbool.h>
#include <stdio.h>
#include <wchar.h>

#include <windows.h>

#include <sddl.h>

#define PIPE  L"\\\\.\\pipe\\execd-test-nobody"
#define DESK  L"execd-test-nobody"
#define EVENT L"execd-test-nobody-event"

int wmain(int argc, WCHAR **argv);

static HANDLE came, con;

static void
tell(const char *what, DWORD error)
{
	char line[200];
	int n = snprintf(line, sizeof(line), "%s: %lu\r\n", what, error);
	DWORD done;

	WriteFile(con, line, (DWORD)n, &done, NULL);
}

static void
tell_opened(const char *what, bool opened)
{
	tell(what, opened ? 0 : GetLastError());
}

/* --- DACLs -------------------------------------------------------------- */

static int
open_all(void)
{
	tell_opened("pipe",
	    CreateFileW(PIPE, GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL) !=
		INVALID_HANDLE_VALUE);
	tell_opened("desktop",
	    OpenDesktopW(DESK, 0, FALSE, DESKTOP_CREATEWINDOW) != NULL);
	tell_opened(
	    "event", OpenEventW(EVENT_MODIFY_STATE, FALSE, EVENT) != NULL);
	return 0;
}

/* Another process has no handle of this one's. */
static int
run_other(void)
{
	STARTUPINFOW info = { .cb = sizeof(info),
		.dwFlags = STARTF_USESTDHANDLES,
		.hStdOutput = con };
	WCHAR path[MAX_PATH], line[] = L"wine open";
	PROCESS_INFORMATION made;

	GetModuleFileNameW(NULL, path, MAX_PATH);
	SetHandleInformation(con, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
	if (!CreateProcessW(
		path, line, NULL, NULL, TRUE, 0, NULL, NULL, &info, &made))
		return 1;
	WaitForSingleObject(made.hProcess, INFINITE);
	return 0;
}

/* "D:P" is a list that permits nothing to anybody. */
static int
objects(void)
{
	SECURITY_ATTRIBUTES nobody = { .nLength = sizeof(nobody) };
	HANDLE pipe;

	if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
		L"D:P", SDDL_REVISION_1, &nobody.lpSecurityDescriptor, NULL))
		return 1;
	pipe = CreateNamedPipeW(PIPE, PIPE_ACCESS_OUTBOUND,
	    PIPE_TYPE_BYTE | PIPE_WAIT, 1, 512, 512, 0, &nobody);
	if (pipe == INVALID_HANDLE_VALUE ||
	    CreateDesktopW(DESK, NULL, NULL, 0, GENERIC_ALL, &nobody) == NULL ||
	    CreateEventW(&nobody, FALSE, FALSE, EVENT) == NULL)
		return 2;
	return run_other();
}

/* --- logons ------------------------------------------------------------- */

static int
logon(void)
{
	STARTUPINFOW info = { .cb = sizeof(info) };
	WCHAR line[] = L"cmd /c exit 0";
	PROCESS_INFORMATION made;
	HANDLE token;

	tell_opened("LogonUser",
	    LogonUserW(L"execd-nobody", L".", L"wrong",
		LOGON32_LOGON_INTERACTIVE, LOGON32_PROVIDER_DEFAULT, &token));
	SetLastError(0);
	if (CreateProcessWithLogonW(L"execd-nobody", L".", L"wrong", 0,
		L"C:\\windows\\system32\\cmd.exe", line, 0, NULL, NULL, &info,
		&made))
		return 1;
	tell("CreateProcessWithLogonW", GetLastError());
	return 0;
}

/* --- a console ---------------------------------------------------------- */

static BOOL WINAPI
on_event(DWORD type)
{
	tell("event", type);
	SetEvent(came);
	return TRUE;
}

static int
event(void)
{
	SetConsoleCtrlHandler(on_event, TRUE);
	tell_opened("generate", GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0));
	tell("wait", WaitForSingleObject(came, 2000));
	return 0;
}

static void
tell_size(void)
{
	CONSOLE_SCREEN_BUFFER_INFO info;

	if (!GetConsoleScreenBufferInfo(con, &info))
		tell("size", GetLastError());
	tell("columns", (DWORD)info.dwSize.X);
}

static int
console(void)
{
	HANDLE in = CreateFileW(L"CONIN$", GENERIC_READ | GENERIC_WRITE,
	    FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
	HANDLE standard = GetStdHandle(STD_OUTPUT_HANDLE);
	char c = 0;
	DWORD n;

	SetConsoleCtrlHandler(on_event, TRUE);
	SetConsoleMode(in, ENABLE_PROCESSED_INPUT);
	tell("standard output", GetFileType(standard));
	tell_size();
	while (c != 'q' && ReadFile(in, &c, 1, &n, NULL) && n == 1)
		tell("byte", (DWORD)c);
	tell_size();
	return 0;
}

int
wmain(int argc, WCHAR **argv)
{
	if (argc < 2)
		return 98;
	came = CreateEventW(NULL, FALSE, FALSE, NULL);
	con = GetStdHandle(STD_OUTPUT_HANDLE);
	if (!wcscmp(argv[1], L"console") || !wcscmp(argv[1], L"event"))
		con = CreateFileW(L"CONOUT$", GENERIC_READ | GENERIC_WRITE,
		    FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0,
		    NULL);
	if (!wcscmp(argv[1], L"objects"))
		return objects();
	if (!wcscmp(argv[1], L"open"))
		return open_all();
	if (!wcscmp(argv[1], L"logon"))
		return logon();
	if (!wcscmp(argv[1], L"event"))
		return event();
	return wcscmp(argv[1], L"console") != 0 ? 97 : console();
}
