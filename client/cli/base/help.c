/* SPDX-License-Identifier: ISC */
/*
 * Writes --help and the shell completions from the tables.
 */
#include <stdio.h>
#include <string.h>

#include "options.h"

static void
print_options(const struct option_row *table)
{
	for (; table != NULL && table->name != NULL; table++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", table->name,
		    table->value ? " " : "", table->value ? table->value : "");
		if (table->letter != 0)
			printf("  -%c, %-26s %s\n", table->letter, left,
			    table->help);
		else
			printf("      %-26s %s\n", left, table->help);
	}
}

void
help_print(const struct command *command)
{
	if (command != NULL) {
		printf("usage: execctl [options] %s [options] %s\n%s.\n",
		    command->name, command->arguments, command->help);
		if (command->options != NULL)
			puts("\noptions:");
		print_options(command->options);
		puts("\n'execctl --help' lists the options of every command.");
		return;
	}
	puts("usage: execctl [options] COMMAND [options] [arguments]\n");
	puts("commands:");
	for (const struct command *c = commands; c->name != NULL; c++)
		printf("  %-13s %s\n", c->name, c->help);
	puts("\noptions of every command:");
	print_options(global_options);
	puts("\n'execctl COMMAND --help' tells more about a command; "
	     "execctl(1) is the manual.");
}

/* --- Completions -------------------------------------------------------- */

static void
bash_options(const struct option_row *table)
{
	for (; table != NULL && table->name != NULL; table++) {
		printf(" --%s", table->name);
		if (table->letter != 0)
			printf(" -%c", table->letter);
	}
}

/* Lists the options whose value is not a file; nothing is completed for
 * them. */
static void
bash_values(const struct option_row *table)
{
	for (; table != NULL && table->name != NULL; table++)
		if (table->value != NULL &&
		    table->completes == COMPLETES_NOTHING)
			printf("|--%s", table->name);
}

static void
bash_completion(void)
{
	puts("# bash completion of execctl, written by 'execctl completion "
	     "bash'.\n_execctl()\n{\n"
	     "\tlocal cur=${COMP_WORDS[COMP_CWORD]} "
	     "prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	     "\tlocal word command= options=");
	printf("\tlocal all='");
	bash_options(global_options);
	printf("'\n\tlocal commands='");
	for (const struct command *c = commands; c->name != NULL; c++)
		printf("%s%s", c == commands ? "" : " ", c->name);
	puts("'\n\n\tfor word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
	     "\t\tcase \" $commands \" in\n"
	     "\t\t*\" $word \"*) command=$word; break ;;\n"
	     "\t\tesac\n\tdone\n\tcase $command in");
	for (const struct command *c = commands; c->name != NULL; c++) {
		printf("\t%s) options='", c->name);
		bash_options(c->options);
		puts("' ;;");
	}
	printf("\tesac\n\tcase $prev in\n\t\"\"");
	bash_values(global_options);
	for (const struct command *c = commands; c->name != NULL; c++)
		bash_values(c->options);
	puts(") return ;;\n\tesac\n"
	     "\tif [[ $cur == -* ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$all $options\" -- "
	     "\"$cur\")\n"
	     "\telif [[ -z $command ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands\" -- "
	     "\"$cur\")\n"
	     "\telse\n"
	     "\t\tcompopt -o filenames\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	     "\tfi\n}\ncomplete -F _execctl execctl");
}

/* Writes text for use inside '...' in zsh and fish; a quote must not end it. */
static void
put_quoted(const char *text, const char *escape)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr(escape, *text) != NULL)
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void
zsh_options(const struct option_row *table, const char *indent)
{
	for (; table != NULL && table->name != NULL; table++) {
		char option[80];

		snprintf(option, sizeof(option), "--%s", table->name);
		for (int i = 0; i < 1 + (table->letter != 0); i++) {
			if (i == 1)
				snprintf(option, sizeof(option), "-%c",
				    table->letter);
			printf("%s'*%s[", indent, option);
			put_quoted(table->help, "[]:");
			printf("]%s%s%s' \\\n", table->value ? ":" : "",
			    table->value ? table->value : "",
			    table->value == NULL		 ? ""
			    : table->completes == COMPLETES_FILE ? ":_files"
								 : ": ");
		}
	}
}

static void
zsh_completion(void)
{
	puts("#compdef execctl\n# zsh completion of execctl, written by "
	     "'execctl completion zsh'.\n_execctl() {\n"
	     "\tlocal -a commands\n\tlocal state line\n\tcommands=(");
	for (const struct command *c = commands; c->name != NULL; c++) {
		printf("\t\t'%s:", c->name);
		put_quoted(c->help, ":");
		puts("'");
	}
	puts("\t)\n\t_arguments -C \\");
	zsh_options(global_options, "\t\t");
	puts("\t\t'1:command:{_describe command commands}' \\\n"
	     "\t\t'*::argument:->rest'\n"
	     "\t[[ $state == rest ]] || return\n\tcase $words[1] in");
	for (const struct command *c = commands; c->name != NULL; c++) {
		printf("\t%s)\n\t\t_arguments \\\n", c->name);
		zsh_options(c->options, "\t\t\t");
		zsh_options(global_options, "\t\t\t");
		printf("\t\t\t'*:argument:%s' ;;\n",
		    c->completes == COMPLETES_FILE	? "_files"
		    : c->completes == COMPLETES_COMMAND ? "_normal"
							: " ");
	}
	puts("\tesac\n}\n_execctl \"$@\"");
}

static void
fish_options(const struct option_row *table, const char *condition)
{
	for (; table != NULL && table->name != NULL; table++) {
		printf("complete -c execctl%s -l %s", condition, table->name);
		if (table->letter != 0)
			printf(" -s %c", table->letter);
		if (table->value != NULL)
			printf(table->completes == COMPLETES_FILE ? " -r -F"
								  : " -x");
		printf(" -d '");
		put_quoted(table->help, "\\");
		puts("'");
	}
}

static void
fish_completion(void)
{
	puts("# fish completion of execctl, written by 'execctl completion "
	     "fish'.");
	fish_options(global_options, "");
	for (const struct command *c = commands; c->name != NULL; c++) {
		char condition[96];

		printf("complete -c execctl -f -n __fish_use_subcommand -a %s "
		       "-d '",
		    c->name);
		put_quoted(c->help, "\\");
		puts("'");
		snprintf(condition, sizeof(condition),
		    " -n '__fish_seen_subcommand_from %s'", c->name);
		fish_options(c->options, condition);
	}
}

bool
help_completion(const char *shell)
{
	if (strcmp(shell, "bash") == 0)
		bash_completion();
	else if (strcmp(shell, "zsh") == 0)
		zsh_completion();
	else if (strcmp(shell, "fish") == 0)
		fish_completion();
	else
		return false;
	return true;
}
