/* SPDX-License-Identifier: ISC */
/*
 * A runner for the tests of the launcher, which is none. The variable ROGUE
 * says what it does:
 *
 *	say	says something on standard error and ends with 3
 *	sleep	opens no pipe and does not end
 *	other	lets another process open the pipes
 *	open	opens the pipes and does not end
 *	dacl	opens the pipes, writes their DACLs and ends with 4
 *	garbage	answers with a frame that is no JSON
 *	linger	answers that the command has ended, and does not end
 */
#include <stdio.h>
#include <wchar.h>

#include <windows.h>

#include <aclapi.h>
#include <sddl.h>

static HANDLE pipes[2];

/* The pipes are the last argument and the last but two. */
static void
open_pipes(int argc, WCHAR **argv)
{
	pipes[0] = CreateFileW(
	    argv[argc - 3], GENERIC_READ, 0, NULL, OPEN_EXISTING, 0, NULL);
	pipes[1] = CreateFileW(
	    argv[argc - 1], GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
}

static int
start_other(void)
{
	STARTUPINFOW info = { .cb = sizeof(info) };
	PROCESS_INFORMATION made;

	SetEnvironmentVariableW(L"ROGUE", L"open");
	if (!CreateProcessW(NULL, GetCommandLineW(), NULL, NULL, FALSE, 0, NULL,
		NULL, &info, &made))
		return 97;
	Sleep(INFINITE);
	return 0;
}

static int
tell_dacls(void)
{
	for (int i = 0; i < 2; i++) {
		PSECURITY_DESCRIPTOR sd;
		char *text;

		if (GetSecurityInfo(pipes[i], SE_KERNEL_OBJECT,
			DACL_SECURITY_INFORMATION, NULL, NULL, NULL, NULL,
			&sd) != ERROR_SUCCESS ||
		    !ConvertSecurityDescriptorToStringSecurityDescriptorA(sd,
			SDDL_REVISION_1, DACL_SECURITY_INFORMATION, &text,
			NULL))
			return 96;
		fprintf(stderr, "dacl %s\n", text);
	}
	return 4;
}

int wmain(int argc, WCHAR **argv);

int
wmain(int argc, WCHAR **argv)
{
	WCHAR what[16] = L"";
	DWORD done;

	GetEnvironmentVariableW(L"ROGUE", what, 16);
	if (argc < 5)
		return 98;
	if (!wcscmp(what, L"say")) {
		fprintf(stderr, "last words\n");
		return 3;
	}
	if (!wcscmp(what, L"other"))
		return start_other();
	if (wcscmp(what, L"sleep") != 0)
		open_pipes(argc, argv);
	if (!wcscmp(what, L"dacl"))
		return tell_dacls();
	if (!wcscmp(what, L"garbage"))
		WriteFile(pipes[1], "\3\0\0\0abc", 7, &done, NULL);
	if (!wcscmp(what, L"linger"))
		WriteFile(
		    pipes[1], "\17\0\0\0{\"type\":\"exit\"}", 19, &done, NULL);
	Sleep(INFINITE);
	return 0;
}
