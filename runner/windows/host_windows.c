/* SPDX-License-Identifier: ISC */
/* The one thread that decides, and what it waits for. */
#include "host_windows.h"

static struct {
	struct host_windows given;
	HANDLE port;
	struct timer {
		uint64_t at; /* as GetTickCount64() */
		void (*fn)(void *arg);
		void *arg;
	} timers[HOST_TIMERS];
} host;

struct posted {
	void (*fn)(void *arg);
	void *arg;
};

void
host_windows_open(const struct host_windows *h)
{
	host.given = *h;
	host.port = CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
	if (host.port == NULL)
		log_fatal("completion port: Windows error %lu", GetLastError());
}

bool
host_windows_network_is_blocked(void)
{
	return host.given.network_is_blocked;
}

bool
host_windows_is_sandbox_user(void)
{
	return host.given.is_sandbox_user;
}

void
host_post(void (*fn)(void *arg), void *arg)
{
	struct posted *p = xmalloc(sizeof(*p));

	*p = (struct posted){ fn, arg };
	if (!PostQueuedCompletionStatus(host.port, 0, (ULONG_PTR)p, NULL))
		log_fatal("event: Windows error %lu", GetLastError());
}

void
host_thread(DWORD(WINAPI *fn)(void *arg), void *arg)
{
	HANDLE thread = CreateThread(
	    NULL, 256 << 10, fn, arg, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);

	if (thread == NULL)
		log_fatal("thread: Windows error %lu", GetLastError());
	CloseHandle(thread);
}

void
host_timer(enum host_timer which, uint64_t ms, void (*fn)(void *arg), void *arg)
{
	uint64_t now = GetTickCount64();

	host.timers[which] = (struct timer){
		.at = ms > UINT64_MAX - now ? UINT64_MAX : now + ms,
		.fn = fn,
		.arg = arg,
	};
}

/* Calls what is due, and returns how long to wait for the next. */
static DWORD
run_timers(void)
{
	uint64_t now = GetTickCount64(), wait = INFINITE - 1;
	bool any = false;

	for (size_t i = 0; i < HOST_TIMERS; i++) {
		struct timer t = host.timers[i];

		if (t.fn == NULL)
			continue;
		if (t.at <= now) {
			host.timers[i].fn = NULL;
			t.fn(t.arg);
			return 0;
		}
		any = true;
		wait = t.at - now < wait ? t.at - now : wait;
	}
	return any ? (DWORD)wait : INFINITE;
}

static void
run_once(void)
{
	struct posted *p = NULL;
	DWORD bytes, wait = run_timers();
	OVERLAPPED *none;
	ULONG_PTR key = 0;

	if (!GetQueuedCompletionStatus(host.port, &bytes, &key, &none, wait)) {
		if (GetLastError() != WAIT_TIMEOUT)
			log_fatal("event: Windows error %lu", GetLastError());
		return;
	}
	p = (struct posted *)key;
	p->fn(p->arg);
	free(p);
}

void
host_run(const bool *finished)
{
	while (!*finished || !parent_is_drained())
		run_once();
}

/* "C:\" or "C:/". A path of another machine or of a device is none of ours. */
bool
host_path_is_absolute(struct slice path)
{
	char c = path.len >= 3 ? path.ptr[0] : '\0';

	return ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) &&
	       path.ptr[1] == ':' &&
	       (path.ptr[2] == '\\' || path.ptr[2] == '/');
}
