/* SPDX-License-Identifier: ISC */
/*
 * The operator's ceiling: its defaults.
 */
#include "sandbox_limits.h"

#include <string.h>

/* What opens other machines, in the home of who runs strangers' commands; and
 * nobody makes the directory that opens this one. */
static const char secrets[] = "~/.ssh"
			      "\n-~/.gnupg"
			      "\n-~/.aws"
			      "\n-~/.azure"
			      "\n-~/.kube"
			      "\n-~/.docker"
			      "\n-~/.netrc"
			      "\n-~/.git-credentials"
			      "\n-~/.config/gh"
			      "\n-~/.config/gcloud"
			      "\n-/etc/execd";

/* Sockets of the system, and the tokens that execctl uses. A command with
 * network access and a token could start commands outside of its sandbox. */
#define HIDDEN "/run\n-~/.config/execd"

void
sandbox_limits_default(struct sandbox_limits *l, bool hide_secrets)
{
	*l = (struct sandbox_limits){
		.max_profile = SANDBOX_PROFILE_FULL,
		.unsandboxed = true,
		.external = true,
		.network = true,
		.hide = HIDDEN,
		.protected_names = ".git\n.codex\n.agents\n.aws",
		.nested_git = SANDBOX_NESTED_OFF,
		.nested_git_depth = 3,
		.environment = SANDBOX_ENVIRONMENT_ALL,
		.shm_bytes = 64ull << 20,
		.open_files = 16384,
		.file_bytes = 16ull << 30,
		.pids = 512,
		.memory_bytes = 1ull << 30,
	};
	if (hide_secrets)
		memcpy(l->deny_read, secrets, sizeof(secrets));
}
