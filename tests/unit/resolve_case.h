/* SPDX-License-Identifier: ISC */
/*
 * A resolution in one row: a tree, entries and roots as text, and the plan
 * as text. Entries are words "ACCESS:PATH", ACCESS one of r w d:
 *
 *	r:/a/b		a path			r:@root @min @tmp @tmpdir
 *	w:@ws		the project roots	w:@ws:sub	with a subpath
 *	d:*PATTERN	a pattern		r:@unknown
 *
 * The plan is "BASE [net] [minimal] [no-proc]", then "KIND PATH" per mount:
 * r w as they are, s writable without sockets, d a denied directory (D:
 * reopened), f a denied file, m a masked file, M a masked directory, p a pin, t
 *a directory of its own.
 */
#pragma once

#include <stdlib.h>

#include "fake_fs.h"

#define CASE_WORDS 64

struct resolve_case {
	const char *rule; /* of doc/sandbox.md */
	const char *fs, *entries, *roots, *want;
	const char *cwd;	/* "/ws" */
	const char *policy_cwd; /* none */
	const char *tmpdir, *home, *user_home, *names, *deny, *hide;
	unsigned nested;
	uint64_t depth;
	bool net, no_cwd;
	bool private_tmp, private_tmpdir;
	enum sandbox_type type;
	bool unrestricted;
};

/* A text cut at its blanks. */
struct words {
	char *text; /* owned */
	const char *items[CASE_WORDS + 1];
	size_t count;
};

static inline void
words_split(struct words *w, const char *text)
{
	char *save = NULL, *p;

	memset(w, 0, sizeof(*w));
	w->text = xstrdup(text ? text : "");
	for (p = strtok_r(w->text, " ", &save); p && w->count < CASE_WORDS;
	     p = strtok_r(NULL, " ", &save))
		w->items[w->count++] = p;
}

static inline struct path_uri
path_of(const char *path)
{
	bool foreign = strncmp(path, "file://", 7) == 0;

	return (struct path_uri){ .uri = { path, strlen(path) },
		.path = foreign ? NULL : path,
		.foreign = foreign };
}

static inline void
special_of(struct sandbox_entry *e, const char *name)
{
	static const char *const names[] = { "root", "min", "cwd", "ws",
		"tmpdir", "tmp", "unknown" };
	size_t n = strcspn(name, ":");

	e->kind = SANDBOX_SPECIAL;
	for (size_t i = 0; i < nitems(names); i++)
		if (strlen(names[i]) == n && !memcmp(names[i], name, n))
			e->special = (enum sandbox_special)i;
	if (name[n] == ':')
		e->text = (struct slice){ name + n + 1, strlen(name + n + 1) };
}

static inline void
entry_of(struct sandbox_entry *e, const char *word)
{
	memset(e, 0, sizeof(*e));
	e->access = word[0] == 'r'   ? SANDBOX_READ
		    : word[0] == 'w' ? SANDBOX_WRITE
				     : SANDBOX_DENY;
	word += 2;
	if (*word == '*') {
		e->kind = SANDBOX_GLOB;
		e->text = (struct slice){ word + 1, strlen(word + 1) };
	} else if (*word == '@') {
		special_of(e, word + 1);
	} else {
		e->path = path_of(word);
	}
}

static inline void
plan_text(struct buf *b, const struct plan *plan)
{
	static const char *const bases[] = { "read", "write", "empty" };
	static const char kinds[] = "rwdfmMpt";

	buf_puts(b, bases[plan->base]);
	buf_puts(b, plan->network ? " net" : "");
	buf_puts(b, plan->minimal ? " minimal" : "");
	buf_puts(b, plan->deny_proc ? " no-proc" : "");
	for (size_t i = 0; i < plan->count; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		buf_puts(b, " ");
		buf_put_u8(b, m->reopened  ? 'D'
			      : m->scratch ? 's'
					   : (uint8_t)kinds[m->kind]);
		buf_puts(b, " ");
		buf_puts(b, m->path);
	}
}

struct case_run {
	struct fake_fs fs;
	struct words entries, roots, names, deny, hide;
	struct sandbox_entry list[CASE_WORDS];
	struct path_uri paths[CASE_WORDS];
	struct sandbox_context context;
	struct resolve_request request;
	struct plan plan;
	char error[ARGS_ERROR_MAX];
	int err;
};

static inline void
case_context(struct case_run *run, const struct resolve_case *c)
{
	struct sandbox_context *x = &run->context;

	for (size_t i = 0; i < run->entries.count; i++)
		entry_of(&run->list[i], run->entries.items[i]);
	for (size_t i = 0; i < run->roots.count; i++)
		run->paths[i] = path_of(run->roots.items[i]);
	*x = (struct sandbox_context){ .type = c->type,
		.network_enabled = c->net,
		.files_unrestricted = c->unrestricted,
		.entries = run->list,
		.nentries = run->entries.count,
		.glob_scan_max_depth = c->depth,
		.roots = run->paths,
		.nroots = run->roots.count,
		.has_cwd = c->policy_cwd != NULL,
		.has_home = c->user_home != NULL };
	if (x->has_cwd)
		x->cwd = path_of(c->policy_cwd);
	if (x->has_home)
		x->home = path_of(c->user_home);
}

/* The tree is made by the caller. */
static inline void
case_resolve(struct case_run *run, const struct resolve_case *c)
{
	struct fs_view view = fake_view(&run->fs);

	words_split(&run->entries, c->entries);
	words_split(&run->roots, c->roots ? c->roots : "/ws");
	words_split(&run->names, c->names ? c->names : ".git");
	words_split(&run->deny, c->deny);
	words_split(&run->hide, c->hide);
	case_context(run, c);
	run->request = (struct resolve_request){ .context = &run->context,
		.cwd = c->no_cwd ? NULL
		       : c->cwd	 ? c->cwd
				 : "/ws",
		.tmpdir = c->tmpdir,
		.home = c->home,
		.protected_names = run->names.items,
		.deny_read = run->deny.items,
		.hide = run->hide.items,
		.nested_git_depth = c->nested,
		.private_tmp = c->private_tmp,
		.private_tmpdir = c->private_tmpdir };
	run->err = resolve(&run->plan, &run->request, &view, run->error);
}

static inline void
case_clear(struct case_run *run)
{
	plan_clear(&run->plan);
	free(run->entries.text);
	free(run->roots.text);
	free(run->names.text);
	free(run->deny.text);
	free(run->hide.text);
}
