/* SPDX-License-Identifier: ISC */
/*
 * A forked child under a command_filter, and what it says of a call. Included
 * once in a test, after cmocka.h.
 */
#pragma once

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command_filter.h"

/* Not in Debian 12's headers. */
#define NR_fchmodat2	  452
#define NR_statmount	  457
#define NR_listmount	  458
#define NR_open_tree_attr 467

#define HIGH (1l << 32 | 1l << 62) /* bits the kernel does not look at */

/* Errors of the filter get this on top, and are no longer to be mistaken for
 * the kernel's own. */
#define MARK 1000

static inline int
failed(int line, const char *what)
{
	dprintf(2, "line %d: %s: %s\n", line, what, strerror(errno));
	return 1;
}

#define REFUSED(error, call)                                                   \
	do {                                                                   \
		if ((call) != -1 || errno != MARK + (error))                   \
			return failed(__LINE__, #call);                        \
	} while (0)
#define PASSED(call)                                                           \
	do {                                                                   \
		if ((call) == -1 && errno > MARK)                              \
			return failed(__LINE__, #call);                        \
	} while (0)
#define EITHER(refused, call)                                                  \
	do {                                                                   \
		if (refused)                                                   \
			REFUSED(EPERM, call);                                  \
		else                                                           \
			PASSED(call);                                          \
	} while (0)
#define WORKS(what)                                                            \
	do {                                                                   \
		if (!(what))                                                   \
			return failed(__LINE__, #what);                        \
	} while (0)

static inline void
compile(struct command_filter *f, const struct command_filter_options *o)
{
	assert_int_equal(command_filter_compile(f, o), 0);
	assert_true(f->len > 0 && f->len <= BPF_MAXINSNS);
}

static inline void
mark(struct command_filter *f)
{
	for (size_t i = 0; i < f->len; i++)
		if (f->code[i].code == (BPF_RET | BPF_K) &&
		    (f->code[i].k & SECCOMP_RET_ACTION_FULL) ==
			SECCOMP_RET_ERRNO)
			f->code[i].k += MARK;
}

/* Wait status of a child that loads the filters, then acts. Without a
 * terminal to lose. */
static inline int
run_under(const struct command_filter *f, size_t n, int (*act)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		setsid();
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			_exit(98);
		for (size_t i = 0; i < n; i++)
			if (command_filter_load(&f[i]) != 0)
				_exit(99);
		_exit(act());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static inline int
run(const struct command_filter_options *o, int (*act)(void))
{
	struct command_filter f;
	int status;

	compile(&f, o);
	mark(&f);
	status = run_under(&f, 1, act);
	command_filter_clear(&f);
	return status;
}
