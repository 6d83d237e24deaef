/* SPDX-License-Identifier: ISC */
/* The inner launcher, which is the sandbox user. */

#include <stdio.h>
#include <wchar.h>

#include <windows.h>

#include <ntsecapi.h>
#include <sddl.h>

#include "frames.h"
#include "launch_start.h"

#define PIPE_BYTES (256u << 10)

static struct {
	const struct launch_options *options;
	struct pipe_end in, out;  /* the standard handles */
	struct pipe_end to, from; /* the runner's pipes */
	HANDLE runner;
	DWORD pid;
	HANDLE thread;	/* reads what the runner says; NULL: no runner */
	bool is_told;	/* it has relayed the end of the command */
	bool is_ending; /* no more is told */
} inner;

/* --- who may open what -------------------------------------------------- */

/* The descriptor is freed by LocalFree(). */
static SECURITY_ATTRIBUTES
permit(const char *rights, const struct launch_list *sids)
{
	SECURITY_ATTRIBUTES sa = { .nLength = sizeof(sa) };
	struct buf text;

	buf_init(&text, 1u << 16);
	launch_put_dacl(&text, rights, sids);
	buf_put_u8(&text, 0);
	if (!ConvertStringSecurityDescriptorToSecurityDescriptorA(
		(const char *)text.data, SDDL_REVISION_1,
		&sa.lpSecurityDescriptor, NULL))
		launch_fail(LAUNCH_SANDBOX, GetLastError(), "a SID");
	buf_clear(&text);
	return sa;
}

/* It is there as long as this launcher. */
static void
make_desktop(const struct launch_options *o)
{
	SECURITY_ATTRIBUTES sa = permit("GA", &o->sids);
	_cleanup_free_ WCHAR *name = launch_wide(o->desktop);

	if (CreateDesktopW(name, NULL, NULL, 0, GENERIC_ALL, &sa) == NULL)
		launch_fail(
		    LAUNCH_SANDBOX, GetLastError(), "the private desktop");
	LocalFree(sa.lpSecurityDescriptor);
}

struct connecting {
	WCHAR name[80];
	OVERLAPPED overlapped;
};

/*
 * A name that somebody else has made a pipe of is an error. Who writes may read
 * as well, because otherwise he could not ask who made the pipe.
 */
static void
make_pipe(struct connecting *c, struct pipe_end *p, bool they_read)
{
	static const struct launch_list nobody;
	SECURITY_ATTRIBUTES sa = permit(they_read ? "GR" : "GRGW", &nobody);
	uint64_t random[2];

	if (!RtlGenRandom(random, sizeof(random)))
		launch_fail(LAUNCH_SPAWN, 0, "no random number");
	swprintf(c->name, nitems(c->name),
	    L"\\\\.\\pipe\\execd-launch-%016llx%016llx", random[0], random[1]);
	p->handle = CreateNamedPipeW(c->name,
	    (they_read ? PIPE_ACCESS_OUTBOUND : PIPE_ACCESS_INBOUND) |
		FILE_FLAG_FIRST_PIPE_INSTANCE | FILE_FLAG_OVERLAPPED,
	    PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT |
		PIPE_REJECT_REMOTE_CLIENTS,
	    1, PIPE_BYTES, PIPE_BYTES, 0, &sa);
	p->event = CreateEventW(NULL, TRUE, FALSE, NULL);
	c->overlapped = (OVERLAPPED){ .hEvent = p->event };
	if (p->handle == INVALID_HANDLE_VALUE || p->event == NULL ||
	    (!ConnectNamedPipe(p->handle, &c->overlapped) &&
		GetLastError() != ERROR_IO_PENDING))
		launch_fail(LAUNCH_SPAWN, GetLastError(), "CreateNamedPipe");
	LocalFree(sa.lpSecurityDescriptor);
}

/* A pipe is opened before the runner's end, so that event comes first. */
static void
wait_until_open(const struct pipe_end *p, uint64_t until)
{
	const HANDLE what[] = { p->event, inner.runner };
	uint64_t now = GetTickCount64();
	ULONG pid = 0;
	DWORD code = 0, got = WaitForMultipleObjects(2, what, FALSE,
			    until > now ? (DWORD)(until - now) : 0);

	if (got == WAIT_OBJECT_0 + 1) {
		GetExitCodeProcess(inner.runner, &code);
		launch_fail(LAUNCH_SPAWN, 0,
		    "the runner ended with %lu before it opened its pipes",
		    code);
	}
	if (got != WAIT_OBJECT_0)
		launch_fail(LAUNCH_SPAWN, 0,
		    "the runner did not open its pipes within %u ms",
		    (unsigned)inner.options->start_timeout_ms);
	if (!GetNamedPipeClientProcessId(p->handle, &pid) || pid != inner.pid)
		launch_fail(LAUNCH_SANDBOX, 0,
		    "process %lu opened a pipe of the runner, which is "
		    "process %lu",
		    pid, inner.pid);
}

/* --- a runner ----------------------------------------------------------- */

/* The runner has our standard error and nothing else of us. */
static void
start_runner(const WCHAR *in, const WCHAR *out)
{
	const struct launch_options *o = inner.options;
	_cleanup_free_ WCHAR *program = launch_wide(o->runner);
	STARTUPINFOW info = { .cb = sizeof(info),
		.dwFlags = STARTF_USESTDHANDLES,
		.hStdError = GetStdHandle(STD_ERROR_HANDLE) };
	PROCESS_INFORMATION made;
	WCHAR line[4096];

	if ((size_t)swprintf(line, nitems(line),
		L"\"%ls\" %ls%ls--server-pid %lu --pipe-in %ls --pipe-out "
		L"%ls",
		program, o->network_is_blocked ? L"--network-is-blocked " : L"",
		o->sandbox_user ? L"--sandbox-user " : L"",
		GetCurrentProcessId(), in, out) >= nitems(line))
		launch_fail(
		    LAUNCH_SPAWN, ERROR_FILENAME_EXCED_RANGE, "--runner");
	made = launch_process(line, &info, o);
	inner.runner = made.hProcess;
	inner.pid = made.dwProcessId;
}

static bool
is_last(const char *text, size_t len)
{
	const struct json_value *type = NULL;
	struct json_doc doc;
	bool is;

	if (json_parse(&doc, text, len) == 0)
		type = json_get(doc.root, "type");
	is = type != NULL && type->type == JSON_STRING &&
	     (json_is(type, "exit") || json_is(type, "error"));
	json_clear(&doc);
	return is;
}

static DWORD WINAPI
runner_thread(void *arg)
{
	char *text, error[64];
	DWORD code = 0;
	size_t len;

	while (!inner.is_told &&
	       pipe_end_read_frame(&inner.from, &text, &len) == FRAME_WHOLE) {
		inner.is_told = is_last(text, len);
		if (launch_write_frame(&inner.out, text, len) != ERROR_SUCCESS)
			ExitProcess(LAUNCH_FAILED);
		free(text);
	}
	if (!inner.is_told && !inner.is_ending) {
		WaitForSingleObject(inner.runner, INFINITE);
		GetExitCodeProcess(inner.runner, &code);
		snprintf(
		    error, sizeof(error), "the runner ended with %lu", code);
		launch_say_error(LAUNCH_SPAWN, 0, error);
	}
	inner.is_told = true;
	return 0;
}

/* What does not end by itself is killed with the launcher. */
static void
expect_end(HANDLE what)
{
	if (WaitForSingleObject(what, (DWORD)inner.options->start_timeout_ms) !=
	    WAIT_OBJECT_0)
		launch_fail(LAUNCH_SPAWN, 0, "the runner does not end");
}

/* Waits until its command has ended, however long that takes. */
static void
end_runner(void)
{
	const HANDLE open[] = { inner.thread, inner.runner, inner.to.handle,
		inner.to.event, inner.from.handle, inner.from.event };

	if (inner.thread == NULL)
		return;
	WaitForSingleObject(inner.thread, INFINITE);
	expect_end(inner.runner);
	for (size_t i = 0; i < nitems(open); i++)
		if (open[i] != NULL)
			CloseHandle(open[i]);
	inner.thread = NULL;
}

static void
begin_runner(void)
{
	uint64_t until = GetTickCount64() + inner.options->start_timeout_ms;
	static struct connecting to, from;

	make_pipe(&to, &inner.to, true);
	make_pipe(&from, &inner.from, false);
	start_runner(to.name, from.name);
	wait_until_open(&inner.to, until);
	wait_until_open(&inner.from, until);
	inner.is_told = false;
	inner.thread = CreateThread(NULL, 0, runner_thread, NULL, 0, NULL);
	if (inner.thread == NULL)
		launch_fail(LAUNCH_SPAWN, GetLastError(), "thread");
}

/* --- frames ------------------------------------------------------------- */

/* The runner decides what an absolute path is. */
static bool
any_path(struct slice path)
{
	return true;
}

/*
 * A spawn_request waits until the command before it has ended. What comes too
 * late for a command is dropped, because nobody reads it any more.
 */
static void
take_frame(const char *text, size_t len)
{
	char error[ARGS_ERROR_MAX];
	struct frames_message m;
	int err = frames_parse(&m, any_path, text, len, error);

	if (inner.thread == NULL || (err < 0 && inner.is_told) ||
	    (err == 0 && m.type == FRAMES_SPAWN_REQUEST)) {
		end_runner();
		launch_version = m.version != 0 ? m.version : launch_version;
		begin_runner();
	}
	frames_clear(&m);
	launch_write_frame(&inner.to, text, len);
}

/* What the runner's thread still has is told first. */
static void
end_input(enum frame_end end)
{
	inner.is_ending = true;
	if (inner.thread != NULL) {
		CloseHandle(inner.to.handle);
		inner.to.handle = NULL;
		expect_end(inner.thread);
	}
	end_runner();
	if (end != FRAME_NONE)
		launch_fail("protocol", 0,
		    "a frame that is cut, empty or longer than 8388608 bytes");
}

unsigned
launch_frames_serve(const struct launch_options *o)
{
	enum frame_end end;
	bool is_cut;
	char *text;
	size_t len;

	inner.options = o;
	inner.in.handle = GetStdHandle(STD_INPUT_HANDLE);
	inner.out.handle = GetStdHandle(STD_OUTPUT_HANDLE);
	SetHandleInformation(inner.in.handle, HANDLE_FLAG_INHERIT, 0);
	SetHandleInformation(inner.out.handle, HANDLE_FLAG_INHERIT, 0);
	SetHandleInformation(GetStdHandle(STD_ERROR_HANDLE),
	    HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT);
	if (o->desktop != NULL)
		make_desktop(o);
	while ((end = pipe_end_read_frame(&inner.in, &text, &len)) ==
	       FRAME_WHOLE) {
		take_frame(text, len);
		free(text);
	}
	is_cut = inner.thread != NULL && !inner.is_told;
	end_input(end);
	return LAUNCH_SERVED + is_cut;
}
