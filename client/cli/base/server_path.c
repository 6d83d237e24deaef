/* SPDX-License-Identifier: ISC */
/*
 * Server paths on the command line.
 */
#include "server_path.h"

#include <string.h>

const char *
server_path_part(const char *argument)
{
	const char *colon = strchr(argument, ':');

	/* A colon after a slash belongs to the path: ./a:b and /a:b are
	 * local. */
	if (colon == NULL || memchr(argument, '/', (size_t)(colon - argument)))
		return NULL;
	return colon + 1;
}

static bool
is_chosen(const struct execctl *ctl, const char *name)
{
	return ctl->environment.name != NULL &&
	       strcmp(ctl->environment.name, name) == 0;
}

int
server_path_choose(struct execctl *ctl, const char *argument)
{
	const char *path = server_path_part(argument);
	_cleanup_free_ char *name =
	    xstrndup(argument, (size_t)(path - argument) - 1);
	_cleanup_free_ char *error = NULL;

	if (name[0] == '\0' || is_chosen(ctl, name))
		return 0;
	if (ctl->environment.url != NULL)
		return execctl_fail(ctl, EXIT_CTL_USAGE,
		    "`%s' is on another server; one command takes paths of "
		    "one server",
		    argument);
	if (execd_environment_find(name, &ctl->environment, &error) < 0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	return 0;
}

int
server_path_take(struct execctl *ctl, const char **argument)
{
	const char *path = server_path_part(*argument);
	int code;

	if (path == NULL)
		return 0;
	code = server_path_choose(ctl, *argument);
	*argument = path;
	return code;
}
