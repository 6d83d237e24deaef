/*
 * From a client's sandbox context to the nest that enforces it.
 */
#include "sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "disk_view.h"
#include "log.h"

static struct nest_options
options_of(const struct sandbox_host *host, const struct sandbox_limits *l)
{
	return (struct nest_options){
		.parent_death_signal = host->parent_death_signal,
		.unix_local = l->unix_sockets == SANDBOX_UNIX_LOCAL,
		.unix_allow = l->unix_sockets == SANDBOX_UNIX_ALLOW,
		.allow_32bit = l->allow_32bit,
		.allow_setid = l->allow_setid,
		.allow_nested_userns = l->allow_nested_userns,
		.shm_bytes = l->shm_bytes,
		.open_files = l->open_files,
		.file_bytes = l->file_bytes,
		/* The same by other means, where there are no groups. */
		.processes = host->counted ? 0 : l->pids,
		.data_bytes = host->counted ? 0 : l->memory_bytes,
	};
}

void
sandbox_init(struct sandbox *sb, const struct sandbox_host *host,
    const struct sandbox_limits *limits)
{
	struct nest_options options = options_of(host, limits);

	*sb = (struct sandbox){ .home = host->home,
		.tmpdir = host->tmpdir,
		.counted = host->counted };
	ceiling_init(&sb->ceiling, limits, host->home ? host->home : "/");
	nest_pool_init(
	    &sb->pool, host->door, &options, host->give_up, host->owner);
}

bool
sandbox_permits_none(const struct sandbox *sb)
{
	return sb->ceiling.limits.unsandboxed;
}

static int
refuse(char *error)
{
	snprintf(error, ARGS_ERROR_MAX, "%s", SANDBOX_UNENFORCEABLE);
	return -EINVAL;
}

static int
make_plan(struct sandbox *sb, const struct sandbox_context *granted,
    const char *cwd, struct plan *plan, char *error)
{
	struct ceiling *c = &sb->ceiling;
	const struct resolve_request r = {
		.context = granted,
		.cwd = cwd,
		.tmpdir = sb->tmpdir,
		.home = sb->home,
		.protected_names = c->protected_names,
		.deny_read = c->deny_read,
		.hide = c->hide,
		.nested_git_depth = c->limits.nested_git_depth,
	};
	int err = resolve(plan, &r, &disk_view, error);

	if (err < 0 && err != -EINVAL) {
		log_error(err, "sandbox: resolving the policy");
		return refuse(error);
	}
	return err < 0
		   ? err
		   : ceiling_judge_plan(c, granted, sb->tmpdir, plan, error);
}

static int
get_nest(struct sandbox *sb, struct plan *plan, struct nest **nest, char *error)
{
	unsigned least = sb->ceiling.limits.landlock_min_abi;

	if (nest_get(&sb->pool, plan, nest) < 0)
		return refuse(error);
	if ((*nest)->landlock_abi >= least)
		return 0;
	log_error(0, "sandbox: Landlock ABI %u, at least %u is required",
	    (*nest)->landlock_abi, least);
	return refuse(error);
}

int
sandbox_find(struct sandbox *sb, const struct sandbox_context *asked,
    const char *cwd, struct nest **nest, char *error)
{
	struct ceiling_grant grant;
	struct plan plan = { 0 };
	int err;

	*nest = NULL;
	if (sb->ceiling.limits.require_groups && !sb->counted) {
		log_error(0, "control groups are required, and there are none");
		return refuse(error);
	}
	err = ceiling_judge(&sb->ceiling, asked, cwd, &grant, error);
	/* What does not restrict files means nothing to a file operation. */
	if (err < 0 || grant.context.unrestricted ||
	    (cwd == NULL && grant.context.files_unrestricted))
		return err;
	err = make_plan(sb, &grant.context, cwd, &plan, error);
	if (err == 0)
		err = get_nest(sb, &plan, nest, error);
	plan_clear(&plan);
	return err;
}
