/* SPDX-License-Identifier: ISC */
#include "sandbox_limits.h"

/* Credentials for other machines, in the home of the user that runs the
 * commands. /etc/execd, which holds the credentials for this machine, may not
 * even be created. */
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

/* Sockets of the system, the tokens of execctl, and the socket of `execd ctl`.
 * A command with network access and a token could start commands outside its
 * sandbox. */
#define HIDDEN "/run\n-~/.config/execd\n-~/.local/state/execd"

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
		.open_files = 16384,
		.file_bytes = 16ull << 30,
		.network_host = true,
		.network_connections = SANDBOX_NETWORK_CONNECTIONS,
	};
	if (hide_secrets)
		memcpy(l->deny_read, secrets, sizeof(secrets));
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a == 0 || (b > 0 && b < a) ? b : a;
}

struct sandbox_group
sandbox_limits_smallest(const struct sandbox_limits *l)
{
	return (struct sandbox_group){
		.pids = smaller(
		    l->pids, smaller(l->of_identity.pids, l->of_all.pids)),
		.memory_bytes = smaller(
		    l->memory_bytes, smaller(l->of_identity.memory_bytes,
					 l->of_all.memory_bytes)),
	};
}
