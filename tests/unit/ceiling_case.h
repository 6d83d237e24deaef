/* SPDX-License-Identifier: ISC */
/*
 * A real directory for tests of the ceiling: work/a, other, work/out which
 * leads to other, in which leads to work.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ceiling.h"

/* Not in /tmp, which is of every workspace. */
static char top[] = "/var/tmp/execd-ceiling-XXXXXX";
static char error[ARGS_ERROR_MAX];

static inline const char *
at(const char *name)
{
	static char paths[8][256];
	static int next;
	char *path = paths[next++ % 8];

	snprintf(path, 256, "%s/%s", top, name);
	return path;
}

static inline int
make_tree(void **state)
{
	if (mkdtemp(top) == NULL)
		return -1;
	return mkdir(at("work"), 0755) || mkdir(at("work/a"), 0755) ||
	       mkdir(at("other"), 0755) ||
	       symlink("../other", at("work/out")) || symlink("work", at("in"));
}

static inline int
remove_tree(void **state)
{
	return unlink(at("in")) || unlink(at("work/out")) ||
	       rmdir(at("other")) || rmdir(at("work/a")) || rmdir(at("work")) ||
	       rmdir(top);
}

static inline struct ceiling
make(bool strict)
{
	struct sandbox_limits l;
	struct ceiling c;

	sandbox_limits_default(&l, false);
	if (strict) {
		l.max_profile = SANDBOX_PROFILE_WORKSPACE_WRITE;
		l.unsandboxed = l.external = false;
	}
	ceiling_init(&c, &l, "/home/u");
	return c;
}

static inline void
clear(struct ceiling *c)
{
	free(c->workspace_roots);
	free(c->writable_roots);
	free(c->deny_read);
	free(c->hide);
	free(c->protected_names);
}

static const struct sandbox_context plain = { .type = SANDBOX_MANAGED };
