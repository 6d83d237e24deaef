/* SPDX-License-Identifier: ISC */
/*
 * execd-launch.exe: runs commands through execd-runner.exe as a sandbox user,
 * as execd-launch(8) says. It decides nothing about a policy; it is the
 * parent that runner frames have.
 */
#include <wchar.h>

#include "base.h"
#include "config.h"
#include "frames.h"
#include "launch_start.h"
#include "wide_text.h"

static const char usage_text[] =
    "usage: execd-launch [OPTION...] --runner PATH --cwd DIR -- COMMAND...\n"
    "       execd-launch [OPTION...] --runner PATH --frames\n"
    "       --user NAME --password-env VARIABLE | --sandbox-user\n"
    "       --network-is-blocked\n"
    "       --start-timeout-ms N --desktop NAME --cap-sid SID\n"
    "       of a command: --timeout-ms N\n"
    "       --policy read-only|workspace-write|PROFILE\n";

static const char version_text[] =
    "execd-launch " EXECD_VERSION " for Windows\n"
    "It was tested under Wine 8 without --user, and not run on Windows.\n"
    "Compiled, arguments checked, not run or not enforced there:\n"
    "CreateProcessWithLogonW, and the DACLs of pipes and of the desktop.\n"
    "There is no second attempt with less: without the logon nothing runs.\n";

/* --- the command's environment ------------------------------------------ */

static void
set_variable(const WCHAR *name, const WCHAR *value)
{
	if (!SetEnvironmentVariableW(name, value))
		launch_fail(LAUNCH_SPAWN, GetLastError(), "the environment");
}

/* The directory of path[] or above it that has .git, otherwise path[]. As git
 * writes it: with "/". */
static void
find_repository(WCHAR *path, size_t size)
{
	_cleanup_free_ WCHAR *probe = xcalloc(size + 8, sizeof(*probe));
	size_t end = wcslen(path);

	for (size_t i = end; i > 0; i--) {
		bool is_end = path[i] == 0 || wcschr(L"\\/", path[i]) != NULL;

		if (!is_end)
			continue;
		swprintf(probe, size + 8, L"%.*ls\\.git", (int)i, path);
		if (GetFileAttributesW(probe) != INVALID_FILE_ATTRIBUTES) {
			end = i;
			break;
		}
	}
	path[end] = 0;
	for (WCHAR *p = path; *p != 0; p++)
		if (*p == L'\\')
			*p = L'/';
}

/* git refuses a repository of another user unless this names it. What the
 * environment says of git already stays. */
static void
set_git(const char *cwd)
{
	_cleanup_free_ WCHAR *path = launch_wide(cwd);
	WCHAR text[32] = L"", name[48];
	unsigned long n;

	GetEnvironmentVariableW(L"GIT_CONFIG_COUNT", text, nitems(text));
	n = wcstoul(text, NULL, 10);
	swprintf(text, nitems(text), L"%lu", n + 1);
	set_variable(L"GIT_CONFIG_COUNT", text);
	swprintf(name, nitems(name), L"GIT_CONFIG_KEY_%lu", n);
	set_variable(name, L"safe.directory");
	swprintf(name, nitems(name), L"GIT_CONFIG_VALUE_%lu", n);
	find_repository(path, wcslen(path) + 1);
	set_variable(name, path);
}

/* Ours, with what the options say. The inner launcher has its own already. */
static const char *const *
build_environment(const struct launch_options *o)
{
	WCHAR *all, *at;
	const char **list;
	size_t n = 0;

	set_git(o->cwd);
	all = GetEnvironmentStringsW();
	for (at = all; *at != 0; at += wcslen(at) + 1)
		n++;
	list = xcalloc(n + 1, sizeof(*list));
	for (at = all, n = 0; *at != 0; at += wcslen(at) + 1)
		if ((list[n] = utf8_of_wide(at)) != NULL)
			n++;
		else
			log_warn(
			    0, "a variable that is no Unicode is left out");
	FreeEnvironmentStringsW(all);
	return list;
}

/* --- the program -------------------------------------------------------- */

static const char *const *
narrow(int argc, WCHAR **argv)
{
	const char **list = xcalloc((size_t)argc + 1, sizeof(*list));

	for (int i = 0; i < argc; i++)
		if ((list[i] = utf8_of_wide(argv[i])) == NULL)
			log_fatal("argument %d is no Unicode", i);
	return list;
}

static unsigned
run(struct launch_options *o)
{
	static char desktop[40];

	launch_version = o->frames ? FRAMES_NEW : 0;
	if (o->inner)
		return launch_frames_serve(o);
	snprintf(desktop, sizeof(desktop), "execd-launch-%lu",
	    GetCurrentProcessId());
	if (!o->frames && o->desktop == NULL)
		o->desktop = desktop;
	launch_inner_start(o);
	return o->frames ? launch_relay()
			 : launch_command(o, build_environment(o));
}

int wmain(int argc, WCHAR **argv);

int
wmain(int argc, WCHAR **argv)
{
	struct launch_options o;
	char error[LAUNCH_ERROR_MAX];

	log_init("execd-launch", LOG_LEVEL_INFO);
	if (launch_parse(&o, narrow(argc, argv), error) < 0) {
		log_error(0, "%s", error);
		fputs(usage_text, stderr);
		return 2;
	}
	if (o.help || o.version) {
		fputs(o.help ? usage_text : version_text, stdout);
		return 0;
	}
	/* Threads may still block in their handles. */
	ExitProcess(run(&o));
}
