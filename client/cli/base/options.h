/* SPDX-License-Identifier: ISC */
/*
 * The command line of execctl. One table describes it: arguments are parsed
 * with it, and --help and the completions of three shells are written from it.
 */
#pragma once

#include "base.h"

struct execctl;

/* What an argument is, for shell completion. */
enum completes {
	COMPLETES_NOTHING,
	COMPLETES_FILE, /* of a command: also :PATH of the server */
	COMPLETES_PATH, /* of the server, with the colon or without */
	COMPLETES_COMMAND,
};

struct option_row {
	const char *name;  /* NULL: end of the table */
	char letter;	   /* 0: none */
	const char *value; /* its name in --help; NULL: no value */
	const char *help;
	enum completes completes;
	char also; /* another letter for it; 0: none */
};

struct command {
	const char *name; /* NULL: end of the table */
	const char *arguments;
	const char *help;
	int (*run)(struct execctl *ctl);  /* returns the exit status */
	const struct option_row *options; /* the command's own; may be NULL */
	int min_arguments, max_arguments; /* -1: any number */
	bool stops; /* options end at the first argument */
	enum completes completes;
};

/* command_table.c */
extern const struct option_row execctl_options[]; /* of every command */
extern const struct command execctl_commands[];

/* The parsed command line. The strings point into argv. */
struct parsed {
	const struct command *command;
	struct given {
		const struct option_row *row;
		const char *value;
	} * given; /* owned */
	size_t ngiven;
	char **arguments; /* ends with NULL */
	char *made;	  /* owned: an option in another form than it came */
	int narguments;
};

/* Parses the command line by these tables, which stay valid. Returns 0, or an
 * exit status after a message on stderr. p->command is NULL after --help and
 * --version. */
int options_parse(struct parsed *p, const struct option_row *options,
    const struct command *all, int argc, char **argv);
void options_clear(struct parsed *p);

/* Returns the last value of an option, "" if it takes no value, or NULL if it
 * was not given. */
const char *option(const struct parsed *p, const char *name);
/* Returns the value of the option's occurrence i, or NULL. */
const char *option_nth(const struct parsed *p, const char *name, size_t i);

/* Parses a duration like "500ms", "10s", "1m30s" or "2h" into milliseconds.
 * Without a unit it is in seconds. Returns 0 or -EINVAL. */
int option_duration(const char *text, uint64_t *ms);

/* Writes the completion script of a shell. False: the shell is unknown. */
bool help_completion(const char *shell);
