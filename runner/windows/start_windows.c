/* SPDX-License-Identifier: ISC */
#include "start_windows.h"

#include "host_windows.h"
#include "token_policy.h"
#include "wide_text.h"

#define CONSOLE_ROWS 24
#define CONSOLE_COLS 80

/* One for the handles, one for the pseudo console. */
#define ATTRIBUTES 1

/* The longest name of a window station or a desktop, with its NUL. */
#define DESKTOP_MAX 256

/* Big enough that a command and the runner need not wake each other often. */
#define PIPE_BYTES (256u << 10)

/* Everything that exists while a command is started. */
struct start {
	const struct command_request *request;
	struct started *result;
	struct command_error *error;
	struct program program;
	HANDLE token; /* NULL: the runner's own */
	/* The command's ends. */
	HANDLE in, out, err;
	WCHAR *desktop; /* owned; STATION\DESKTOP; NULL: the runner's own */
	LPPROC_THREAD_ATTRIBUTE_LIST attributes; /* owned */
	HANDLE inherited[3];
};

bool
start_failed(
    struct command_error *e, const char *code, const char *step, DWORD number)
{
	e->code = code;
	e->windows_error = number;
	snprintf(e->message, sizeof(e->message), "%s (Windows error %lu)", step,
	    number);
	return false;
}

static bool
failed(struct start *s, const char *step)
{
	return start_failed(s->error, CODE_SPAWN, step, GetLastError());
}

static void
close_handle(HANDLE *h)
{
	if (*h != NULL)
		CloseHandle(*h);
	*h = NULL;
}

/* --- its streams -------------------------------------------------------- */

static bool
make_pipe(struct start *s, HANDLE *ours, HANDLE *theirs, bool we_read)
{
	HANDLE r, w;

	if (!CreatePipe(&r, &w, NULL, PIPE_BYTES))
		return failed(s, "CreatePipe");
	*ours = we_read ? r : w;
	*theirs = we_read ? w : r;
	return true;
}

static bool
inherit(struct start *s, HANDLE h, size_t i)
{
	s->inherited[i] = h;
	if (SetHandleInformation(h, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT))
		return true;
	return failed(s, "SetHandleInformation");
}

static bool
open_input(struct start *s)
{
	if (s->request->asked->stdin_open)
		return make_pipe(s, &s->result->in, &s->in, false);
	s->in = CreateFileW(L"NUL", GENERIC_READ,
	    FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0, NULL);
	if (s->in != INVALID_HANDLE_VALUE)
		return true;
	s->in = NULL;
	return failed(s, "NUL");
}

static bool
open_pipes(struct start *s)
{
	return open_input(s) && make_pipe(s, &s->result->out, &s->out, true) &&
	       make_pipe(s, &s->result->err, &s->err, true) &&
	       inherit(s, s->in, 0) && inherit(s, s->out, 1) &&
	       inherit(s, s->err, 2);
}

static bool
open_console(struct start *s)
{
	const COORD size = { CONSOLE_COLS, CONSOLE_ROWS };
	HRESULT hr;

	if (!make_pipe(s, &s->result->in, &s->in, false) ||
	    !make_pipe(s, &s->result->out, &s->out, true))
		return false;
	hr = CreatePseudoConsole(size, s->in, s->out, 0, &s->result->console);
	if (SUCCEEDED(hr))
		return true;
	s->result->console = NULL;
	return start_failed(s->error, CODE_SPAWN, "CreatePseudoConsole",
	    (DWORD)HRESULT_CODE(hr));
}

/* The command inherits these handles and no other one of the runner. */
static bool
set_attributes(struct start *s)
{
	bool tty = s->result->console != NULL;
	SIZE_T bytes = 0;
	BOOL set;

	InitializeProcThreadAttributeList(NULL, ATTRIBUTES, 0, &bytes);
	s->attributes = xcalloc(1, bytes);
	if (!InitializeProcThreadAttributeList(
		s->attributes, ATTRIBUTES, 0, &bytes)) {
		failed(s, "InitializeProcThreadAttributeList");
		free(s->attributes);
		s->attributes = NULL;
		return false;
	}
	set = tty ? UpdateProcThreadAttribute(s->attributes, 0,
			PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, s->result->console,
			sizeof(HPCON), NULL, NULL)
		  : UpdateProcThreadAttribute(s->attributes, 0,
			PROC_THREAD_ATTRIBUTE_HANDLE_LIST, s->inherited,
			sizeof(s->inherited), NULL, NULL);
	return set || failed(s, "UpdateProcThreadAttribute");
}

/* --- its policy --------------------------------------------------------- */

/* The name of a window station or a desktop, which the caller frees, or NULL
 * with the error in GetLastError(). */
static WCHAR *
object_name(HANDLE object)
{
	WCHAR *name = xcalloc(DESKTOP_MAX, sizeof(*name));

	if (GetUserObjectInformationW(
		object, UOI_NAME, name, DESKTOP_MAX * sizeof(*name), NULL))
		return name;
	free(name);
	return NULL;
}

/*
 * The desktop must be there already: a command on the runner's own desktop
 * could send input to its windows.
 */
static bool
check_desktop(struct start *s, const char *text, const WCHAR *name)
{
	HDESK desk;

	if (name == NULL || strpbrk(text, "\\/") != NULL)
		return start_failed(s->error, CODE_SANDBOX,
		    "private_desktop_name", ERROR_INVALID_NAME);
	desk = OpenDesktopW(
	    name, 0, FALSE, DESKTOP_READOBJECTS | DESKTOP_CREATEWINDOW);
	if (desk == NULL)
		return start_failed(s->error, CODE_SANDBOX,
		    "the private desktop", GetLastError());
	CloseDesktop(desk);
	return true;
}

/*
 * The station is the runner's own, in which the desktop was opened: that of a
 * service is not Winsta0. Without a name, CreateProcessAsUser would look for a
 * desktop by the token, and a program with user32.dll would not start.
 */
static bool
name_desktop(struct start *s, const WCHAR *name)
{
	_cleanup_free_ WCHAR *station = object_name(GetProcessWindowStation());
	size_t n;

	if (station == NULL || name == NULL)
		return start_failed(
		    s->error, CODE_SANDBOX, "the desktop", GetLastError());
	n = wcslen(station) + wcslen(name) + 2;
	s->desktop = xcalloc(n, sizeof(WCHAR));
	swprintf(s->desktop, n, L"%ls\\%ls", station, name);
	return true;
}

static bool
find_desktop(struct start *s)
{
	const struct slice asked = s->request->asked->desktop;
	_cleanup_free_ char *text = xstrndup(asked.ptr, asked.len);
	_cleanup_free_ WCHAR *name = NULL;

	if (asked.len > 0) {
		name = wide_of_utf8(text);
		return check_desktop(s, text, name) && name_desktop(s, name);
	}
	if (s->token == NULL)
		return true;
	name = object_name(GetThreadDesktop(GetCurrentThreadId()));
	return name_desktop(s, name);
}

static bool
enforce(struct start *s)
{
	const struct frames_spawn *asked = s->request->asked;
	struct token_policy policy;

	if (token_policy_decide(&policy, asked,
		host_windows_network_is_blocked(), s->error->message) < 0) {
		s->error->code = CODE_SANDBOX;
		s->error->windows_error = 0;
		return false;
	}
	if (policy.write_restricted &&
	    !token_make(asked->cap_sids, &s->token, s->error))
		return false;
	return find_desktop(s);
}

/* --- its job and its process -------------------------------------------- */

/* A sandboxed command reads and sends nothing through windows of others, the
 * clipboard or global atoms, and logs nobody off. */
static bool
restrict_ui(struct start *s)
{
	JOBOBJECT_BASIC_UI_RESTRICTIONS ui = {
		.UIRestrictionsClass = JOB_OBJECT_UILIMIT_HANDLES |
				       JOB_OBJECT_UILIMIT_READCLIPBOARD |
				       JOB_OBJECT_UILIMIT_WRITECLIPBOARD |
				       JOB_OBJECT_UILIMIT_SYSTEMPARAMETERS |
				       JOB_OBJECT_UILIMIT_DISPLAYSETTINGS |
				       JOB_OBJECT_UILIMIT_GLOBALATOMS |
				       JOB_OBJECT_UILIMIT_DESKTOP |
				       JOB_OBJECT_UILIMIT_EXITWINDOWS,
	};

	return SetInformationJobObject(s->result->job,
		   JobObjectBasicUIRestrictions, &ui, sizeof(ui)) ||
	       failed(s, "SetInformationJobObject");
}

/* Without JOB_OBJECT_LIMIT_BREAKAWAY_OK nothing leaves it. */
static bool
make_job(struct start *s)
{
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = { 0 };

	limits.BasicLimitInformation.LimitFlags =
	    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
	    JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
	s->result->job = CreateJobObjectW(NULL, NULL);
	if (s->result->job == NULL)
		return failed(s, "CreateJobObject");
	if (!SetInformationJobObject(s->result->job,
		JobObjectExtendedLimitInformation, &limits, sizeof(limits)))
		return failed(s, "SetInformationJobObject");
	return s->token == NULL || restrict_ui(s);
}

static bool
create(struct start *s, PROCESS_INFORMATION *made)
{
	const DWORD flags = CREATE_SUSPENDED | CREATE_UNICODE_ENVIRONMENT |
			    EXTENDED_STARTUPINFO_PRESENT |
			    (s->result->console ? 0 : CREATE_NO_WINDOW);
	STARTUPINFOEXW info = {
		.StartupInfo = { .cb = sizeof(info),
		    .lpDesktop = s->desktop,
		    .dwFlags = STARTF_USESTDHANDLES,
		    .hStdInput = s->result->console ? NULL : s->in,
		    .hStdOutput = s->result->console ? NULL : s->out,
		    .hStdError = s->err },
		.lpAttributeList = s->attributes,
	};
	BOOL inherits = s->result->console == NULL, done;

	if (s->token != NULL)
		done = CreateProcessAsUserW(s->token, s->program.path,
		    s->program.line, NULL, NULL, inherits, flags,
		    s->program.environment, s->program.cwd, &info.StartupInfo,
		    made);
	else
		done = CreateProcessW(s->program.path, s->program.line, NULL,
		    NULL, inherits, flags, s->program.environment,
		    s->program.cwd, &info.StartupInfo, made);
	return done ||
	       failed(s, s->token ? "CreateProcessAsUser" : "CreateProcess");
}

static bool
run(struct start *s)
{
	PROCESS_INFORMATION made;
	bool runs;

	if (!create(s, &made))
		return false;
	runs = (AssignProcessToJobObject(s->result->job, made.hProcess) ||
		   failed(s, "AssignProcessToJobObject")) &&
	       (ResumeThread(made.hThread) != (DWORD)-1 ||
		   failed(s, "ResumeThread"));
	CloseHandle(made.hThread);
	s->result->process = made.hProcess;
	s->result->pid = made.dwProcessId;
	if (!runs)
		TerminateProcess(made.hProcess, 1);
	return runs;
}

static void
start_clear(struct start *s)
{
	program_clear(&s->program);
	close_handle(&s->token);
	close_handle(&s->in);
	close_handle(&s->out);
	close_handle(&s->err);
	free(s->desktop);
	if (s->attributes != NULL)
		DeleteProcThreadAttributeList(s->attributes);
	free(s->attributes);
}

static void
started_close(struct started *s)
{
	if (s->console != NULL)
		ClosePseudoConsole(s->console);
	close_handle(&s->process);
	close_handle(&s->job);
	close_handle(&s->in);
	close_handle(&s->out);
	close_handle(&s->err);
}

bool
start_windows(const struct command_request *r, struct started *result,
    struct command_error *e)
{
	struct start s = { .request = r, .result = result, .error = e };
	bool done;

	*result = (struct started){ 0 };
	if (!program_prepare(r, &s.program, e))
		return false;
	done = enforce(&s) &&
	       (r->asked->tty ? open_console(&s) : open_pipes(&s)) &&
	       set_attributes(&s) && make_job(&s) && run(&s);
	start_clear(&s);
	if (!done)
		started_close(result);
	return done;
}
