/* SPDX-License-Identifier: ISC */
/*
 * A command for the tests of a Windows runner, which needs nothing that a Wine
 * may lack:
 *
 *	child.exe args [ARGUMENT...]	writes each argument as a line
 *	child.exe env NAME		writes the value of a variable
 *	child.exe cat			copies its input to its output
 *	child.exe exit CODE
 *	child.exe sleep MS [MARKER]	says "ready" first
 *	child.exe leave			leaves a child that keeps the output
 *	child.exe escape		tries to start a child outside its job
 *	child.exe where			writes its directory
 *	child.exe desktop		writes the desktop that it was given
 *	child.exe acl			writes its user, and the ACL of what it
 *					makes, in SDDL
 */
#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include <windows.h>

#include <sddl.h>

int wmain(int argc, WCHAR **argv);

static int
say(const WCHAR *text)
{
	char utf8[65536];

	if (WideCharToMultiByte(
		CP_UTF8, 0, text, -1, utf8, sizeof(utf8), NULL, NULL) == 0)
		return 96;
	puts(utf8);
	return fflush(stdout);
}

static int
cat(void)
{
	char bytes[4096];
	size_t n;

	while ((n = fread(bytes, 1, sizeof(bytes), stdin)) > 0)
		fwrite(bytes, 1, n, stdout);
	return fflush(stdout);
}

static int
start_sleeper(DWORD flags)
{
	STARTUPINFOW info = { .cb = sizeof(info) };
	PROCESS_INFORMATION made;
	WCHAR path[MAX_PATH], line[MAX_PATH + 32];

	GetModuleFileNameW(NULL, path, MAX_PATH);
	swprintf(line, MAX_PATH + 32, L"child sleep 1000000");
	if (CreateProcessW(
		path, line, NULL, NULL, TRUE, flags, NULL, NULL, &info, &made))
		return say(flags != 0 ? L"escaped" : L"left");
	printf("Windows error %lu\n", GetLastError());
	return 0;
}

static int
desktop(void)
{
	STARTUPINFOW info = { .cb = sizeof(info) };

	GetStartupInfoW(&info);
	return say(info.lpDesktop != NULL ? info.lpDesktop : L"none");
}

static int
acl(void)
{
	static char bytes[65536];
	DWORD n = sizeof(bytes);
	SECURITY_DESCRIPTOR sd;
	HANDLE own;
	WCHAR *text;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &own) ||
	    !GetTokenInformation(own, TokenUser, bytes, n, &n) ||
	    !ConvertSidToStringSidW(((TOKEN_USER *)bytes)->User.Sid, &text))
		return 92;
	say(text);
	n = sizeof(bytes);
	if (!GetTokenInformation(own, TokenDefaultDacl, bytes, n, &n) ||
	    !InitializeSecurityDescriptor(&sd, SECURITY_DESCRIPTOR_REVISION) ||
	    !SetSecurityDescriptorDacl(
		&sd, TRUE, ((TOKEN_DEFAULT_DACL *)bytes)->DefaultDacl, FALSE) ||
	    !ConvertSecurityDescriptorToStringSecurityDescriptorW(
		&sd, SDDL_REVISION_1, DACL_SECURITY_INFORMATION, &text, NULL))
		return 91;
	return say(text);
}

static int
with_argument(const WCHAR *what, const WCHAR *arg)
{
	WCHAR value[32768];

	if (!wcscmp(what, L"env"))
		return GetEnvironmentVariableW(arg, value, 32768) > 0
			   ? say(value)
			   : 95;
	if (!wcscmp(what, L"exit"))
		ExitProcess((UINT)wcstoul(arg, NULL, 0));
	if (!wcscmp(what, L"sleep")) {
		say(L"ready");
		Sleep((DWORD)wcstoul(arg, NULL, 0));
		return 0;
	}
	return 94;
}

int
wmain(int argc, WCHAR **argv)
{
	WCHAR place[MAX_PATH];

	_setmode(_fileno(stdin), _O_BINARY);
	_setmode(_fileno(stdout), _O_BINARY);
	if (argc < 2)
		return 98;
	if (!wcscmp(argv[1], L"args")) {
		for (int i = 2; i < argc; i++)
			say(argv[i]);
		return 0;
	}
	if (!wcscmp(argv[1], L"cat"))
		return cat();
	if (!wcscmp(argv[1], L"leave"))
		return start_sleeper(0);
	if (!wcscmp(argv[1], L"escape"))
		return start_sleeper(CREATE_BREAKAWAY_FROM_JOB);
	if (!wcscmp(argv[1], L"where"))
		return GetCurrentDirectoryW(MAX_PATH, place) ? say(place) : 93;
	if (!wcscmp(argv[1], L"desktop"))
		return desktop();
	if (!wcscmp(argv[1], L"acl"))
		return acl();
	return argc > 2 ? with_argument(argv[1], argv[2]) : 97;
}
