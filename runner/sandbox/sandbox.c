/*
 * From a client's sandbox context to the nest that enforces it.
 */
#include "sandbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "disk_view.h"
#include "log.h"

#define SHM_BYTES  (64ull << 20)
#define OPEN_FILES 16384
#define FILE_BYTES (16ull << 30)

/* Levels below a writable root where nested repositories are looked for. */
#define NESTED_GIT_DEPTH 3

static const char *const protected_names[] = { ".git", ".codex", ".agents",
	".aws", NULL };

/* The host's sockets. */
static const char *const hidden[] = { "/run", NULL };

void
sandbox_init(struct sandbox *sb, int door, const struct nest_options *host,
    const char *home, const char *tmpdir,
    bool (*give_up)(void *owner, const struct nest *n), void *owner)
{
	struct nest_options options = *host;

	options.shm_bytes = SHM_BYTES;
	options.open_files = OPEN_FILES;
	options.file_bytes = FILE_BYTES;

	*sb = (struct sandbox){ .home = home, .tmpdir = tmpdir };
	nest_pool_init(&sb->pool, door, &options, give_up, owner);
}

static int
refuse(char *error)
{
	snprintf(error, ARGS_ERROR_MAX, "%s", SANDBOX_UNENFORCEABLE);
	return -EINVAL;
}

int
sandbox_find(struct sandbox *sb, const struct sandbox_context *c,
    const char *cwd, struct nest **nest, char *error)
{
	const struct resolve_request r = {
		.context = c,
		.cwd = cwd,
		.tmpdir = sb->tmpdir,
		.home = sb->home,
		.protected_names = protected_names,
		.hide = hidden,
		.nested_git_depth = NESTED_GIT_DEPTH,
	};
	struct plan plan;
	int err;

	*nest = NULL;
	if (c->unrestricted)
		return 0;
	err = resolve(&plan, &r, &disk_view, error);
	if (err < 0 && err != -EINVAL) {
		log_error(err, "sandbox: resolving the policy");
		err = refuse(error);
	} else if (err == 0 && nest_get(&sb->pool, &plan, nest) < 0) {
		err = refuse(error);
	}
	plan_clear(&plan);
	return err;
}
