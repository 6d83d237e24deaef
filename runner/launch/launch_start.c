/* SPDX-License-Identifier: ISC */
/* The one logon, the job, and how failures are told. */
#include "launch_start.h"

#include <wchar.h>

#include "command_line.h"
#include "frames.h"
#include "wide_text.h"

/* How long what is dead may take to let go of its standard error. */
#define LAST_WORDS_MS 5000

#define FRAME_MAX_BYTES (1u << 20)

unsigned launch_version;
struct launch_inner launch_inner;

/* What is started is in it, and what that starts: all ends with us. */
static HANDLE job;

/* --- failures ----------------------------------------------------------- */

DWORD
launch_write_frame(const struct pipe_end *to, const char *text, size_t len)
{
	uint32_t header = (uint32_t)len;
	DWORD err = pipe_end_write(to, &header, sizeof(header));

	return err != ERROR_SUCCESS ? err : pipe_end_write(to, text, len);
}

void
launch_say_error(const char *code, DWORD number, const char *message)
{
	struct pipe_end out = { GetStdHandle(STD_OUTPUT_HANDLE), NULL };
	const struct frames_error e = { .code = code,
		.windows_error = number,
		.spawning = true,
		.message = message };
	struct json_writer w;
	struct buf frame;

	buf_init(&frame, FRAME_MAX_BYTES);
	json_writer_init(&w, &frame);
	frames_write_error(&w, launch_version, &e);
	launch_write_frame(&out, (const char *)frame.data, frame.len);
	buf_clear(&frame);
}

void
launch_fail(const char *code, DWORD number, const char *fmt, ...)
{
	char text[1100];
	size_t n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, 1024, fmt, ap);
	va_end(ap);
	n = strlen(text);
	if (number != 0)
		snprintf(
		    text + n, sizeof(text) - n, " (Windows error %lu)", number);
	TerminateJobObject(job, 1);
	if (launch_inner.errors_thread != NULL)
		WaitForSingleObject(launch_inner.errors_thread, LAST_WORDS_MS);
	if (launch_version != 0)
		launch_say_error(code, number, text);
	else
		log_error(0, "%s: %s", code, text);
	ExitProcess(LAUNCH_FAILED);
}

WCHAR *
launch_wide(const char *text)
{
	WCHAR *wide = wide_of_utf8(text);

	if (wide == NULL)
		launch_fail(LAUNCH_SPAWN, GetLastError(), "an argument");
	return wide;
}

/* --- the logon ---------------------------------------------------------- */

#define FLAGS (CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_UNICODE_ENVIRONMENT)

/* Takes the variable away, so that nothing that is started has it. */
static WCHAR *
take_password(const char *variable)
{
	_cleanup_free_ WCHAR *name = launch_wide(variable);
	DWORD n = GetEnvironmentVariableW(name, NULL, 0);
	WCHAR *password = xcalloc(n + 1, sizeof(WCHAR));

	if (n == 0)
		launch_fail(
		    LAUNCH_SANDBOX, 0, "--password-env %s: not set", variable);
	GetEnvironmentVariableW(name, password, n);
	SetEnvironmentVariableW(name, NULL);
	return password;
}

static bool
is_local_system(void)
{
	union {
		TOKEN_USER user;
		uint8_t bytes[sizeof(TOKEN_USER) + SECURITY_MAX_SID_SIZE];
	} own;
	DWORD n;

	return GetTokenInformation(GetCurrentProcessToken(), TokenUser, &own,
		   sizeof(own), &n) &&
	       IsWellKnownSid(own.user.User.Sid, WinLocalSystemSid);
}

/*
 * Wine's version of the call fails and sets no error. The error that is set
 * before the call then tells the caller that Wine has no such function.
 */
static BOOL
create_as_user(WCHAR *line, const WCHAR *cwd, STARTUPINFOW *info,
    PROCESS_INFORMATION *made, const struct launch_options *o)
{
	_cleanup_free_ WCHAR *user = launch_wide(o->user);
	WCHAR *password = take_password(o->password_env);
	WCHAR *slash = wcschr(user, L'\\');
	const WCHAR *name = slash != NULL ? slash + 1 : user, *domain = L".";
	BOOL done;
	DWORD err;

	if (slash != NULL) {
		*slash = 0;
		domain = user;
	}
	SetLastError(ERROR_CALL_NOT_IMPLEMENTED);
	/* Without its profile the user has no HKEY_CURRENT_USER of its own. */
	done = CreateProcessWithLogonW(name,
	    wcschr(name, L'@') != NULL ? NULL : domain, password,
	    LOGON_WITH_PROFILE, NULL, line, FLAGS, NULL, cwd, info, made);
	err = GetLastError();
	SecureZeroMemory(password, wcslen(password) * sizeof(WCHAR));
	free(password);
	SetLastError(err);
	return done;
}

static void
make_job(void)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };

	limits.BasicLimitInformation.LimitFlags =
	    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
	job = CreateJobObjectW(NULL, NULL);
	if (job == NULL ||
	    !SetInformationJobObject(job, JobObjectExtendedLimitInformation,
		&limits, sizeof(limits)))
		launch_fail(LAUNCH_SPAWN, GetLastError(), "the job");
}

/* In the system's directory, because every user may be there. */
PROCESS_INFORMATION
launch_process(WCHAR *line, STARTUPINFOW *info, const struct launch_options *o)
{
	PROCESS_INFORMATION made;
	WCHAR cwd[MAX_PATH] = L"";
	BOOL done;
	DWORD err;

	if (o->user != NULL && is_local_system())
		launch_fail(LAUNCH_SANDBOX, 0,
		    "--user: Windows lets no program of LocalSystem log a user "
		    "on; start execd-launch as the sandbox user, with "
		    "--sandbox-user, or as another account");
	if (job == NULL)
		make_job();
	GetSystemDirectoryW(cwd, MAX_PATH);
	done = o->user != NULL ? create_as_user(line, cwd, info, &made, o)
			       : CreateProcessW(NULL, line, NULL, NULL, TRUE,
				     FLAGS, NULL, cwd, info, &made);
	err = GetLastError();
	if (!done && o->user != NULL)
		launch_fail(LAUNCH_SANDBOX, err, "CreateProcessWithLogonW");
	if (!done)
		launch_fail(LAUNCH_SPAWN, err, "%s", o->runner);
	if (!AssignProcessToJobObject(job, made.hProcess) ||
	    ResumeThread(made.hThread) == (DWORD)-1) {
		err = GetLastError();
		TerminateProcess(made.hProcess, 1);
		launch_fail(LAUNCH_SPAWN, err, "the job");
	}
	CloseHandle(made.hThread);
	return made;
}

/* --- the inner launcher ------------------------------------------------- */

static DWORD WINAPI
errors_thread(void *arg)
{
	struct pipe_end ours = { GetStdHandle(STD_ERROR_HANDLE), NULL };
	static char bytes[4096];
	DWORD n;

	while ((n = pipe_end_read_some(
		    &launch_inner.errors, bytes, sizeof(bytes))) > 0)
		pipe_end_write(&ours, bytes, n);
	return 0;
}

/* Makes a standard handle for the inner launcher, which inherits none of ours.
 * It has no name, so nobody else can open it. */
static HANDLE
make_stream(struct pipe_end *ours, DWORD which)
{
	bool we_write = which == STD_INPUT_HANDLE;
	HANDLE end[2];

	SetHandleInformation(GetStdHandle(which), HANDLE_FLAG_INHERIT, 0);
	if (!CreatePipe(&end[0], &end[1], NULL, 0) ||
	    !SetHandleInformation(
		end[!we_write], HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT))
		launch_fail(LAUNCH_SPAWN, GetLastError(), "CreatePipe");
	ours->handle = end[we_write];
	return end[!we_write];
}

/* What the inner launcher has to know. */
static WCHAR *
build_line(const struct launch_options *o)
{
	const char *argv[12 + 2 * LAUNCH_LIST_MAX] = { "", "--inner",
		"--frames", "--runner", o->runner };
	char start[24], why[COMMAND_LINE_ERROR_MAX];
	_cleanup_free_ char *own = NULL;
	WCHAR path[MAX_PATH] = L"", *line;
	struct buf text;
	size_t n = 5;

	GetModuleFileNameW(NULL, path, MAX_PATH - 1);
	own = utf8_of_wide(path);
	snprintf(start, sizeof(start), "%u", (unsigned)o->start_timeout_ms);
	argv[n++] = "--start-timeout-ms";
	argv[n++] = start;
	if (o->network_is_blocked)
		argv[n++] = "--network-is-blocked";
	if (o->user != NULL || o->sandbox_user)
		argv[n++] = "--sandbox-user";
	if (o->desktop != NULL) {
		argv[n++] = "--desktop";
		argv[n++] = o->desktop;
	}
	for (size_t i = 0; i < o->sids.count; i++) {
		argv[n++] = "--cap-sid";
		argv[n++] = o->sids.items[i];
	}
	buf_init(&text, COMMAND_LINE_MAX * 3);
	if (own == NULL ||
	    command_line_build(&text, own, NULL, (char *const *)argv, why) < 0)
		launch_fail(LAUNCH_SPAWN, 0, "the launcher's own path");
	buf_put_u8(&text, 0);
	line = launch_wide((const char *)text.data);
	buf_clear(&text);
	return line;
}

void
launch_inner_start(const struct launch_options *o)
{
	STARTUPINFOW info = { .cb = sizeof(info),
		.dwFlags = STARTF_USESTDHANDLES };
	_cleanup_free_ WCHAR *line = build_line(o);
	struct launch_inner *in = &launch_inner;

	info.hStdInput = make_stream(&in->to, STD_INPUT_HANDLE);
	info.hStdOutput = make_stream(&in->from, STD_OUTPUT_HANDLE);
	info.hStdError = make_stream(&in->errors, STD_ERROR_HANDLE);
	in->process = launch_process(line, &info, o).hProcess;
	CloseHandle(info.hStdInput);
	CloseHandle(info.hStdOutput);
	CloseHandle(info.hStdError);
	in->errors_thread = CreateThread(NULL, 0, errors_thread, NULL, 0, NULL);
}

DWORD
launch_inner_finish(void)
{
	DWORD code = LAUNCH_FAILED;

	CloseHandle(launch_inner.to.handle);
	CloseHandle(launch_inner.from.handle);
	WaitForSingleObject(launch_inner.process, INFINITE);
	GetExitCodeProcess(launch_inner.process, &code);
	WaitForSingleObject(launch_inner.errors_thread, LAST_WORDS_MS);
	if (code - LAUNCH_SERVED >= 2 && code != LAUNCH_FAILED)
		log_error(0, "the inner launcher was ended with %lu", code);
	return code - LAUNCH_SERVED < 2 ? code - LAUNCH_SERVED : LAUNCH_FAILED;
}
