/* SPDX-License-Identifier: ISC */
/*
 * What [sandbox] comes to where the operator said nothing: for execd -T. Reads
 * struct sandbox_limits back into the rules.
 */
#include <string.h>

#include "conf.h"
#include "util.h"

static void
fill_choice(uint8_t *rule, uint8_t value)
{
	if (*rule == SANDBOX_UNSET)
		*rule = value;
}

static void
fill_count(uint32_t *rule, uint64_t value)
{
	if (*rule == SANDBOX_UNSET_COUNT)
		*rule = (uint32_t)value;
}

static void
fill_bytes(uint64_t *rule, uint64_t value)
{
	if (*rule == SANDBOX_UNSET_BYTES)
		*rule = value;
}

/* Its items are lines. */
static void
fill_list(struct strings *rule, const char *value)
{
	_cleanup_free_ char *text = xstrdup(value);
	char *rest = text, *line;

	if (rule->count > 0)
		return;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			strings_add(rule, line);
}

static void
fill_ceiling(struct sandbox_rules *r, const struct sandbox_limits *l)
{
	fill_choice(&r->mode, l->require_groups);
	fill_choice(&r->max_profile, l->max_profile);
	fill_choice(&r->unsandboxed, l->unsandboxed);
	fill_choice(&r->external, l->external);
	fill_choice(&r->network, l->network);
	fill_choice(&r->over_limit, l->clamp);
	fill_choice(&r->accept_launch, l->accept_launch);
	fill_list(&r->workspace_roots, l->workspace_roots);
	fill_list(&r->writable_roots, l->writable_roots);
}

static void
fill_every_sandbox(struct sandbox_rules *r, const struct sandbox_limits *l)
{
	fill_list(&r->deny_read, l->deny_read);
	fill_list(&r->hide, l->hide);
	fill_list(&r->protected_names, l->protected_names);
	fill_choice(&r->nested_git, l->nested_git);
	fill_count(&r->nested_git_depth, l->nested_git_depth);
	fill_choice(&r->environment, l->environment);
	fill_choice(&r->tmp, l->tmp);
	fill_choice(&r->tmpdir, l->tmpdir);
	fill_choice(&r->unix_sockets, l->unix_sockets);
	fill_choice(&r->allow_32bit, l->allow_32bit);
	fill_choice(&r->allow_setid, l->allow_setid);
	fill_choice(&r->allow_nested_userns, l->allow_nested_userns);
	fill_count(&r->landlock_min_abi, l->landlock_min_abi);
	fill_choice(&r->landlock_only, l->landlock_only);
}

static void
fill_resources(struct sandbox_rules *r, const struct sandbox_limits *l)
{
	fill_bytes(&r->shm_bytes, l->shm_bytes);
	fill_count(&r->open_files, l->open_files);
	fill_bytes(&r->file_bytes, l->file_bytes);
	fill_count(&r->processes, l->pids);
	fill_bytes(&r->memory_bytes, l->memory_bytes);
	fill_count(&r->cpu_percent, l->cpu_percent);
}

void
conf_fill_sandbox(struct conf *c)
{
	struct identity nobody = { .name = NULL };
	struct sandbox_limits l;

	sandbox_rules_init(&nobody.sandbox);
	conf_sandbox_limits(c, &nobody, &l);
	fill_ceiling(&c->sandbox, &l);
	fill_every_sandbox(&c->sandbox, &l);
	fill_resources(&c->sandbox, &l);
}
