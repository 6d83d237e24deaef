/* SPDX-License-Identifier: ISC */
/*
 * execd-files serves fs/ methods apart from the runner, and is the process of a
 * sandbox, because a file helper in a sandbox is a copy of that process. The
 * runner starts it with its channel on CONTROL_FD, and trusts its answers no
 * more than those of any helper. execd-sandbox is the same program under the
 * name that AppArmor lets make user namespaces (contrib/apparmor); it serves no
 * files outside of a sandbox.
 */

#include "base.h"
#include "config.h"
#include "files.h"
#include "loop.h"
#include "sandbox_message.h"
#include "signals.h"

static int
run_files(bool in_sandbox)
{
	struct event_base *base = loop_new();

	loop_log(base);
	placeholders_begin(in_sandbox);
	return files_run(base, in_sandbox, placeholder_is);
}

static void
serve_inside(void)
{
	run_files(true);
}

int
main(int argc, char **argv)
{
	const char *mode = argc == 2 ? argv[1] : "";
	bool sandbox = strcmp(mode, "--sandbox") == 0;

	if (strcmp(mode, "--version") == 0)
		return puts("execd-files " EXECD_VERSION) < 0;
#ifndef EXECD_ONLY_SANDBOX
	if (!sandbox && strcmp(mode, "--files") != 0)
		return 2;
#else
	if (!sandbox)
		return 2;
#endif
	log_init("execd-runner",
	    getenv("EXECD_DEBUG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	log_never_block();
	signals_ignore_unused(true);
	if (sandbox)
		sandbox_run(serve_inside);
	return run_files(false);
}
