/* SPDX-License-Identifier: ISC */
/*
 * The table of all commands and global options of execctl.
 */
#include "cmd.h"
#include "stdio_relay.h"

const struct option_row execctl_options[] = {
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
	    "how long to try to resume a lost connection (as long as "
	    "the server keeps the session)" },
	{ "silence-timeout", 0, "TIME",
	    "how long a server may be silent until it counts as lost (15s)" },
	{ "json", 'j', NULL, "write JSON, one object a line" },
	{ "quiet", 'q', NULL,
	    "no progress, and no message about a lost "
	    "connection" },
	{ "verbose", 'v', NULL, "say what is done" },
	{ "help", 'h', NULL, "print a summary" },
	{ "version", 'V', NULL, "print the version" },
	{ 0 },
};

const struct command execctl_commands[] = {
	{ "run", "COMMAND [ARGUMENT...]", "Run a command", cmd_run, run_options,
	    1, -1, true, COMPLETES_COMMAND },
	{ "shell", "", "Start a login shell on a terminal", cmd_shell,
	    shell_options },
	{ "cp", "SOURCE... TARGET", "Copy files; :PATH is the server's", cmd_cp,
	    copy_options, 2, -1, false, COMPLETES_FILE },
	{ "ls", "[PATH...]", "List directories", cmd_ls, ls_options, 0, -1 },
	{ "cat", "PATH...", "Write files to standard output", cmd_cat,
	    cat_options, 1, -1 },
	{ "ps", "", "List the commands that the servers keep", cmd_ps,
	    ps_options },
	{ "attach", "SESSION", "Attach to a command again", cmd_attach,
	    attach_options, 1, 1 },
	{ "watch", "SESSION",
	    "Watch a command while another client is attached", cmd_watch,
	    wait_options, 1, 1 },
	{ "logs", "SESSION", "Write what is retained of a command's output",
	    cmd_logs, logs_options, 1, 1 },
	{ "wait", "SESSION", "Wait for the end of a command", cmd_wait,
	    wait_options, 1, 1 },
	{ "kill", "SESSION", "Send a signal to a command", cmd_kill,
	    kill_options, 1, 1 },
	{ "relay", "",
	    "Pass what a client says on standard input on to a server",
	    relay_run },
	{ "info", "", "Describe the server", cmd_info },
	{ "doctor", "", "Check the way to the server, step by step",
	    cmd_doctor },
	{ "environments",
	    "[list | add NAME URL | remove NAME | rename NAME NEW | test NAME]",
	    "Servers by name",
	    cmd_environments, environments_options, 0, 3 },
	{ "ssh-config", "NAME", "Write what makes ssh(1) reach this server",
	    cmd_ssh_config, NULL, 1, 1 },
	{ "completion", "bash | zsh | fish", "Write a shell's completion",
	    cmd_completion, NULL, 1, 1 },
	{ 0 },
};
