/* SPDX-License-Identifier: ISC */
/*
 * Parses the command line with the tables of command_table.c.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "execctl.h"
#include "util.h"

#define ROWS_MAX  64
#define VALUE_ROW 256 /* getopt_long's value of row 0 */

/* The options that are valid now, and their form for getopt_long(3). */
struct rows {
	const struct option_row *row[ROWS_MAX];
	struct option longs[ROWS_MAX + 1];
	char letters[ROWS_MAX * 2 + 4];
	int n;
};

static void
add_rows(struct rows *r, const struct option_row *table)
{
	char *letters = r->letters + strlen(r->letters);

	for (; table != NULL && table->name != NULL; table++) {
		r->row[r->n] = table;
		r->longs[r->n] = (struct option){ table->name,
			table->value ? required_argument : no_argument, NULL,
			VALUE_ROW + r->n };
		r->n++;
		if (table->letter == 0)
			continue;
		*letters++ = table->letter;
		if (table->value != NULL)
			*letters++ = ':';
		*letters = '\0';
	}
	r->longs[r->n] = (struct option){ 0 };
}

static const struct option_row *
find_row(const struct rows *r, int value)
{
	if (value >= VALUE_ROW)
		return r->row[value - VALUE_ROW];
	for (int i = 0; i < r->n; i++)
		if (r->row[i]->letter == value)
			return r->row[i];
	return NULL;
}

/* Skips argv[0]. Returns the index of the first argument, or -1 after a
 * message. */
static int
take_options(struct parsed *p, const struct rows *r, int argc, char **argv)
{
	int value;

	optind = 0; /* restarts getopt_long(3) */
	while ((value = getopt_long(argc, argv, r->letters, r->longs, NULL)) !=
	       -1) {
		const struct option_row *row = find_row(r, value);

		if (row == NULL) {
			fputs("Try 'execctl --help'.\n", stderr);
			return -1;
		}
		p->given =
		    xreallocarray(p->given, p->ngiven + 1, sizeof(*p->given));
		p->given[p->ngiven++] =
		    (struct given){ row, row->value ? optarg : "" };
	}
	return optind;
}

static const struct command *
find_command(const char *name)
{
	for (const struct command *c = commands; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static int
check_arguments(const struct parsed *p)
{
	const struct command *c = p->command;

	if (p->narguments >= c->min_arguments &&
	    (c->max_arguments < 0 || p->narguments <= c->max_arguments))
		return 0;
	fprintf(stderr, "usage: execctl [options] %s [options] %s\n", c->name,
	    c->arguments);
	return EXIT_CTL_USAGE;
}

static bool
wants_no_command(struct parsed *p)
{
	if (option(p, "version") != NULL)
		puts("execctl " EXECD_VERSION);
	else if (option(p, "help") != NULL)
		help_print(p->command);
	else
		return false;
	p->command = NULL;
	return true;
}

int
options_parse(struct parsed *p, int argc, char **argv)
{
	struct rows before = { .letters = "+" }, behind = { 0 };
	int at;

	*p = (struct parsed){ 0 };
	add_rows(&before, global_options);
	at = take_options(p, &before, argc, argv);
	if (at < 0)
		return EXIT_CTL_USAGE;
	if (wants_no_command(p))
		return 0;
	if (at == argc) {
		help_print(NULL);
		return EXIT_CTL_USAGE;
	}
	p->command = find_command(argv[at]);
	if (p->command == NULL) {
		fprintf(stderr,
		    "execctl: there is no command `%s'; try "
		    "'execctl --help'\n",
		    argv[at]);
		return EXIT_CTL_USAGE;
	}
	strcpy(behind.letters, p->command->stops ? "+" : "");
	add_rows(&behind, global_options);
	add_rows(&behind, p->command->options);
	/* getopt_long(3) begins its messages with argv[0]. */
	argc -= at;
	argv += at;
	argv[0] = program_invocation_short_name;
	at = take_options(p, &behind, argc, argv);
	if (at < 0)
		return EXIT_CTL_USAGE;
	if (wants_no_command(p))
		return 0;
	p->arguments = argv + at;
	p->narguments = argc - at;
	return check_arguments(p);
}

void
options_clear(struct parsed *p)
{
	free(p->given);
	*p = (struct parsed){ 0 };
}

const char *
option(const struct parsed *p, const char *name)
{
	const char *value = NULL;

	for (size_t i = 0; i < p->ngiven; i++)
		if (strcmp(p->given[i].row->name, name) == 0)
			value = p->given[i].value;
	return value;
}

const char *
option_nth(const struct parsed *p, const char *name, size_t nth)
{
	for (size_t i = 0; i < p->ngiven; i++)
		if (strcmp(p->given[i].row->name, name) == 0 && nth-- == 0)
			return p->given[i].value;
	return NULL;
}

int
option_duration(const char *text, uint64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 },
		{ "h", 3600000 } };
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno != 0 || n > UINT32_MAX)
		return -EINVAL;
	for (size_t i = 0; i < nitems(units); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		*ms = n * units[i].ms;
		return *ms > 0 ? 0 : -EINVAL;
	}
	return -EINVAL;
}
