/* SPDX-License-Identifier: ISC */
/*
 * The table of all commands and global options of execctl.
 */
#include "cmd.h"

const struct option_row global_options[] = {
	{ "url", 'u', "URL",
	    "the server: ws://, wss://, unix:PATH, stdio:COMMAND or ask:COMMAND" },
	{ "environment", 'e', "NAME", "the server of that name" },
	{ "token-file", 0, "FILE", "the bearer token is in this file",
	    COMPLETES_FILE },
	{ "ca", 0, "FILE", "authorities of the server's certificate",
	    COMPLETES_FILE },
	{ "certificate", 0, "FILE", "the client's own certificate",
	    COMPLETES_FILE },
	{ "key", 0, "FILE", "its key, if it is in another file",
	    COMPLETES_FILE },
	{ "connect-timeout", 0, "TIME", "how long connecting may take (10s)" },
	{ "resume-timeout", 0, "TIME",
	    "how long to try to resume a lost connection (75s)" },
	{ "json", 'j', NULL, "write JSON, one object a line" },
	{ "quiet", 'q', NULL,
	    "no progress, and no message about a lost "
	    "connection" },
	{ "verbose", 'v', NULL, "say what is done" },
	{ "help", 'h', NULL, "print a summary" },
	{ "version", 0, NULL, "print the version" },
	{ 0 },
};

const struct command commands[] = {
	{ "run", "COMMAND [ARGUMENT...]", "Run a command", run_options, 1, -1,
	    true, COMPLETES_COMMAND, cmd_run },
	{ "shell", "", "Start a login shell on a terminal", shell_options, 0, 0,
	    false, COMPLETES_NOTHING, cmd_shell },
	{ "cp", "SOURCE... TARGET", "Copy files; :PATH is the server's",
	    copy_options, 2, -1, false, COMPLETES_FILE, cmd_cp },
	{ "ls", "[PATH...]", "List directories", ls_options, 0, -1, false,
	    COMPLETES_NOTHING, cmd_ls },
	{ "cat", "PATH...", "Write files to standard output", cat_options, 1,
	    -1, false, COMPLETES_NOTHING, cmd_cat },
	{ "ps", "", "List the commands that were started from here", NULL, 0, 0,
	    false, COMPLETES_NOTHING, cmd_ps },
	{ "attach", "SESSION", "Attach to a command again", attach_options, 1,
	    1, false, COMPLETES_NOTHING, cmd_attach },
	{ "watch", "SESSION",
	    "Watch a command while another client is "
	    "attached",
	    attach_options, 1, 1, false, COMPLETES_NOTHING, cmd_watch },
	{ "logs", "SESSION", "Write what is retained of a command's output",
	    logs_options, 1, 1, false, COMPLETES_NOTHING, cmd_logs },
	{ "wait", "SESSION", "Wait for the end of a command", attach_options, 1,
	    1, false, COMPLETES_NOTHING, cmd_wait },
	{ "kill", "SESSION", "Send a signal to a command", kill_options, 1, 1,
	    false, COMPLETES_NOTHING, cmd_kill },
	{ "http", "URL", "Send an HTTP request from the server", http_options,
	    1, 1, false, COMPLETES_NOTHING, cmd_http },
	{ "info", "", "Describe the server", NULL, 0, 0, false,
	    COMPLETES_NOTHING, cmd_info },
	{ "doctor", "", "Check the way to the server, step by step", NULL, 0, 0,
	    false, COMPLETES_NOTHING, cmd_doctor },
	{ "environments", "[list | add NAME URL]", "Servers by name",
	    environments_options, 0, 3, false, COMPLETES_NOTHING,
	    cmd_environments },
	{ "completion", "bash | zsh | fish", "Write a shell's completion", NULL,
	    1, 1, false, COMPLETES_NOTHING, cmd_completion },
	{ 0 },
};
