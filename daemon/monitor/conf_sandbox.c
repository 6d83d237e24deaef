/*
 * [sandbox] of execd.conf(5).
 */
#include <errno.h>

#include "conf.h"
#include "util.h"

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct sandbox_rules, member)         \
	}

static const struct conf_key keys[] = {
	KEY("mode", sandbox_mode, mode),
	KEY("max-profile", sandbox_profile, max_profile),
	KEY("allow-unsandboxed", sandbox_yes_no, unsandboxed),
	KEY("allow-external", sandbox_yes_no, external),
	KEY("allow-network", sandbox_yes_no, network),
	KEY("over-limit", sandbox_over_limit, over_limit),
	KEY("compat-launch-config", sandbox_yes_no, accept_launch),
	KEY("workspace-roots", conf_lines, workspace_roots),
	KEY("writable-roots", conf_lines, writable_roots),
	KEY("deny-read", conf_lines, deny_read),
	KEY("hide", conf_lines, hide),
	KEY("protected-names", conf_words, protected_names),
	KEY("nested-git", sandbox_nested_git, nested_git),
	KEY("nested-git-depth", sandbox_small, nested_git_depth),
	KEY("tmp", sandbox_tmp, tmp),
	KEY("tmpdir", sandbox_tmpdir, tmpdir),
	KEY("environment-inherit", sandbox_environment, environment),
	KEY("unix-sockets", sandbox_unix_sockets, unix_sockets),
	KEY("allow-32bit", sandbox_yes_no, allow_32bit),
	KEY("allow-setid", sandbox_yes_no, allow_setid),
	KEY("allow-nested-userns", sandbox_yes_no, allow_nested_userns),
	KEY("landlock-min-abi", sandbox_small, landlock_min_abi),
	KEY("max-processes", sandbox_count, processes),
	KEY("max-memory", sandbox_bytes, memory_bytes),
	KEY("max-cpu", sandbox_percent, cpu_percent),
	KEY("max-open-files", sandbox_count, open_files),
	KEY("max-file-size", sandbox_bytes, file_bytes),
	KEY("max-shm", sandbox_bytes, shm_bytes),
};

static void *
add(struct conf *c, const char *name, char *why)
{
	return &c->sandbox;
}

static void *
object(const struct conf *c, size_t i)
{
	return i == 0 ? (void *)(uintptr_t)&c->sandbox : NULL;
}

static int
check(struct conf *c, void *o, char *why)
{
	return sandbox_rules_check(o, why) < 0 ? -EINVAL : 0;
}

const struct conf_section conf_sandbox = { "sandbox", false, keys, nitems(keys),
	add, object, check };
