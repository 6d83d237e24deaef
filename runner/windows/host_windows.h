/* SPDX-License-Identifier: ISC */
/*
 * What the parts of the Windows host tell each other. Each blocking handle has
 * a thread of its own, which only moves bytes; everything else is done by the
 * one thread of host_run(), to which the others post events.
 */
#pragma once

#include <wchar.h>

#include <windows.h>

#include "base.h"
#include "host.h"

/* What main() knows: where the parent is, and what it was told. */
struct host_windows {
	HANDLE in, out;
	bool network_is_blocked; /* token_policy.h */
	bool is_sandbox_user;	 /* the account is there for commands only */
};

void host_windows_open(const struct host_windows *h);
bool host_windows_network_is_blocked(void);
bool host_windows_is_sandbox_user(void);

/* Calls fn(arg) from host_run(). From any thread. */
void host_post(void (*fn)(void *arg), void *arg);

/* Starts a thread, which ends with the program. */
void host_thread(DWORD(WINAPI *fn)(void *arg), void *arg);

/*
 * Calls fn(arg) from host_run() after ms milliseconds. Each of the two timers
 * has one time; setting it again replaces it. fn NULL: never.
 */
enum host_timer { TIMER_TIMEOUT, TIMER_LAST_OUTPUT, HOST_TIMERS };
void host_timer(
    enum host_timer which, uint64_t ms, void (*fn)(void *arg), void *arg);

/* Tells whether the parent was told everything, or can be told no more. */
bool parent_is_drained(void);

/* --- parent_windows.c --------------------------------------------------- */

/* The handles stay open until the program ends. Called once, at first. */
void parent_windows_at(HANDLE in, HANDLE out);
