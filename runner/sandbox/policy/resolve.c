/* SPDX-License-Identifier: ISC */
/*
 * Resolves a client's sandbox context to a plan of mounts: the order of the
 * steps (doc/sandbox.md section A10).
 */
#include "resolve_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int
resolve_fail(struct resolver *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->error, ARGS_ERROR_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int
resolve_error(struct resolver *s, int err, const char *base, const char *rest)
{
	const char *slash = *base != '\0' && *rest != '\0' ? "/" : "";

	if (err == -ELOOP)
		return resolve_fail(s,
		    "cannot resolve sandbox path %s%s%s: Too many levels of "
		    "symbolic links (os error 40)",
		    base, slash, rest);
	if (err == -E2BIG)
		return resolve_fail(s,
		    "sandbox paths have more than %d components",
		    RESOLVE_STEPS_MAX);
	return err;
}

void *
resolve_grow(void *items, size_t count, size_t *cap, size_t size)
{
	if (count < *cap)
		return items;
	*cap = *cap ? *cap * 2 : 16;
	return xreallocarray(items, *cap, size);
}

static void
clear(struct resolver *s)
{
	tree_clear(&s->tree);
	for (size_t i = 0; i < s->ntexts; i++)
		free(s->texts[i]);
	for (size_t i = 0; i < s->nlists; i++)
		glob_list_clear(&s->lists[i]);
	free(s->texts);
	free(s->lists);
	free(s->patterns);
	free(s->records);
	free(s->links);
	free(s->roots);
}

static int
run(struct resolver *s, const struct fs_view *view)
{
	int (*const steps[])(struct resolver *) = { resolve_bind,
		resolve_expand, resolve_claim, resolve_protect, resolve_emit };
	int err = tree_init(&s->tree, view);

	for (size_t i = 0; i < nitems(steps) && err == 0; i++)
		err = steps[i](s);
	return err;
}

int
resolve(struct plan *plan, const struct resolve_request *r,
    const struct fs_view *view, char *error)
{
	struct resolver s = {
		.r = r, .c = r->context, .plan = plan, .error = error
	};
	int err;

	*plan = (struct plan){ .network = r->context->network_enabled };
	error[0] = '\0';
	err = run(&s, view);
	clear(&s);
	return err;
}
