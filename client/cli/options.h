/* SPDX-License-Identifier: ISC */
/*
 * The command line of execctl: one table from which arguments are read, and
 * --help and the completions of three shells are written.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl;

/* What an argument is, for completion. */
enum completes { COMPLETES_NOTHING, COMPLETES_FILE, COMPLETES_COMMAND };

struct option_row {
	const char *name;  /* NULL: end of the table */
	char letter;	   /* 0: none */
	const char *value; /* what --help calls it; NULL: takes none */
	const char *help;
	enum completes completes;
};

struct command {
	const char *name; /* NULL: end of the table */
	const char *arguments;
	const char *help;
	const struct option_row *options; /* its own; may be NULL */
	int min_arguments, max_arguments; /* -1: any number */
	bool stops; /* what follows its first argument is not execctl's */
	enum completes completes;
	int (*run)(struct ctl *ctl); /* the exit status */
};

extern const struct option_row global_options[];
extern const struct command commands[]; /* command_table.c */

/* The command line, taken apart. Points into argv. */
struct parsed {
	const struct command *command;
	struct given {
		const struct option_row *row;
		const char *value;
	} * given; /* owned */
	size_t ngiven;
	char **arguments; /* ends with NULL */
	int narguments;
};

/* 0, or the exit status: *p->command is NULL after --help and --version. Says
 * what is wrong on stderr. */
int options_parse(struct parsed *p, int argc, char **argv);
void options_clear(struct parsed *p);

/* The last value of an option ("" if it takes none); NULL: not given. */
const char *option(const struct parsed *p, const char *name);
/* The i-th value of an option that may be repeated, or NULL. */
const char *option_nth(const struct parsed *p, const char *name, size_t i);

/* Milliseconds of "500ms", "10s", "2m", "1h". 0 or -EINVAL. */
int option_duration(const char *text, uint64_t *ms);

/* help.c */
void help_print(const struct command *command); /* NULL: of all */
/* Writes the completion of a shell; false: unknown shell. */
bool help_completion(const char *shell);

#endif
