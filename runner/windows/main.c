/* SPDX-License-Identifier: ISC */
/*
 * execd-runner.exe: one command of one parent, as execd-runner(8) says. It
 * speaks the frames only; sessions are Linux's.
 */

#include <lmcons.h>

#include "base.h"
#include "config.h"
#include "dialect_frames.h"
#include "host_windows.h"
#include "pipe_end.h"

static const char usage_text[] =
    "usage: execd-runner [OPTION...] --stdio\n"
    "       execd-runner [OPTION...] [--server-pid PID]\n"
    "                    --pipe-in PIPE --pipe-out PIPE\n"
    "       --network-is-blocked --sandbox-user\n";

static const char version_text[] =
    "execd-runner " EXECD_VERSION " for Windows\n"
    "It speaks frames of version 1 and 6.\n"
    "Compiled, arguments checked, not enforced here (Wine): tokens, DACLs,\n"
    "CreateProcessWithLogonW, LogonUser, resize, Ctrl-C, execution aliases.\n"
    "execd-launch calls the first of the two logons, and nothing the second.\n"
    "It has no control flow guard, which gcc 12 cannot make.\n"
    "It was not run on Windows.\n"
    "Refused: policies that restrict reading or have patterns, and a\n"
    "restricted network without --network-is-blocked.\n";

struct windows_options {
	bool stdio, network_is_blocked, is_sandbox_user;
	const WCHAR *pipe_in, *pipe_out;
	bool has_server;
	ULONG server_pid; /* who must have made the pipes */
};

static int
usage(void)
{
	fputs(usage_text, stderr);
	return 2;
}

static bool
parse_pid(const WCHAR *text, ULONG *pid)
{
	WCHAR *end;

	errno = 0;
	*pid = wcstoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == 0 && errno == 0;
}

/*
 * Takes "NAME VALUE" and "NAME=VALUE". The reference server starts its runner
 * in the second way.
 */
static bool
option(const WCHAR *name, int argc, WCHAR **argv, int *i, const WCHAR **value)
{
	size_t n = wcslen(name);

	if (wcsncmp(argv[*i], name, n) != 0)
		return false;
	if (argv[*i][n] == L'=') {
		*value = argv[*i] + n + 1;
		return true;
	}
	if (argv[*i][n] != 0 || *i + 1 == argc)
		return false;
	*value = argv[++*i];
	return true;
}

/* Returns -1 to go on, otherwise an exit code. */
static int
parse(struct windows_options *o, int argc, WCHAR **argv)
{
	const WCHAR *pid = NULL;

	for (int i = 1; i < argc; i++) {
		if (!wcscmp(argv[i], L"--stdio")) {
			o->stdio = true;
		} else if (!wcscmp(argv[i], L"--network-is-blocked")) {
			o->network_is_blocked = true;
		} else if (!wcscmp(argv[i], L"--sandbox-user")) {
			o->is_sandbox_user = true;
		} else if (option(L"--pipe-in", argc, argv, &i, &o->pipe_in) ||
			   option(
			       L"--pipe-out", argc, argv, &i, &o->pipe_out) ||
			   option(L"--server-pid", argc, argv, &i, &pid)) {
			continue;
		} else if (!wcscmp(argv[i], L"--version")) {
			fputs(version_text, stdout);
			return 0;
		} else if (!wcscmp(argv[i], L"--help")) {
			fputs(usage_text, stdout);
			return 0;
		} else {
			return usage();
		}
	}
	o->has_server = pid != NULL;
	if (pid != NULL && !parse_pid(pid, &o->server_pid))
		return usage();
	if (o->stdio == (o->pipe_in != NULL) ||
	    (o->pipe_in == NULL) != (o->pipe_out == NULL) ||
	    (o->stdio && o->has_server))
		return usage();
	return -1;
}

/*
 * The reference server passes neither --network-is-blocked nor --sandbox-user.
 * Its setup makes two accounts, which only an administrator can do, and blocks
 * the network of the first. The server starts its runner as the first unless
 * the command may use the network.
 */
static void
know_account(struct windows_options *o)
{
	WCHAR name[UNLEN + 1] = L"";
	DWORD n = nitems(name);

	if (!GetUserNameW(name, &n))
		return;
	if (!_wcsicmp(name, L"CodexSandboxOffline"))
		o->network_is_blocked = o->is_sandbox_user = true;
	else if (!_wcsicmp(name, L"CodexSandboxOnline"))
		o->is_sandbox_user = true;
}

/* The command must not have the parent's pipes as its own. */
static HANDLE
standard(DWORD which)
{
	HANDLE h = GetStdHandle(which);

	if (h == NULL || h == INVALID_HANDLE_VALUE)
		log_fatal("a standard handle is missing");
	SetHandleInformation(h, HANDLE_FLAG_INHERIT, 0);
	return h;
}

int wmain(int argc, WCHAR **argv);

int
wmain(int argc, WCHAR **argv)
{
	struct windows_options o = { 0 };
	struct host_windows h = { 0 };
	int code = parse(&o, argc, argv);

	if (code >= 0)
		return code;
	/* Commands inherit it: a program that crashes, or misses a library,
	 * ends, and shows no box that waits for somebody to click. */
	SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX |
		     SEM_NOOPENFILEERRORBOX);
	know_account(&o);
	h.network_is_blocked = o.network_is_blocked;
	h.is_sandbox_user = o.is_sandbox_user;
	if (o.stdio) {
		h.in = standard(STD_INPUT_HANDLE);
		h.out = standard(STD_OUTPUT_HANDLE);
	} else {
		pipe_client_open(o.pipe_in, o.pipe_out,
		    o.has_server ? &o.server_pid : NULL, &h.in, &h.out);
	}
	host_windows_open(&h);
	parent_windows_at(h.in, h.out);
	/* The threads still block in their handles, so nothing is unwound. */
	ExitProcess(dialect_frames_run());
}
