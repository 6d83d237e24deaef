/* SPDX-License-Identifier: ISC */
#include "options.h"

#include <ctype.h>
#include <getopt.h>

#include "config.h"
#include "execctl.h"
#include "nearest.h"

static const struct option_row *global_options;
static const struct command *commands;

#define ROWS_MAX  64
#define VALUE_ROW 256 /* getopt_long's value of row 0 */

/* The options that are valid now, and their form for getopt_long(3). */
struct rows {
	const struct option_row *row[ROWS_MAX];
	struct option longs[ROWS_MAX + 1];
	char letters[ROWS_MAX * 3 + 4];
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
		if (table->also != 0)
			*letters++ = table->also;
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
		if (r->row[i]->letter == value || r->row[i]->also == value)
			return r->row[i];
	return NULL;
}

/* What docker calls it. */
static const char *
option_called_here(const char *given)
{
	static const char *const names[][2] = { { "--workdir", "cwd" },
		{ "-w", "cwd" }, { "--publish", "forward" },
		{ "-p", "forward" } };

	for (size_t i = 0; i < nitems(names); i++)
		if (strcmp(names[i][0], given) == 0)
			return names[i][1];
	return NULL;
}

static bool
has_row(const struct rows *r, const char *name)
{
	for (int i = 0; name != NULL && i < r->n; i++)
		if (strcmp(r->row[i]->name, name) == 0)
			return true;
	return false;
}

/* getopt_long(3) has said what is wrong with the option before argv[optind]. */
static void
say_what_was_meant(const struct rows *r, char **argv)
{
	const char *given = argv[optind - 1];
	struct nearest n = { .given = given + 2 };

	for (int i = 0; i < r->n && strncmp(given, "--", 2) == 0; i++)
		nearest_try(&n, r->row[i]->name);
	if (has_row(r, option_called_here(given)))
		n.name = option_called_here(given);
	if (n.name != NULL)
		fprintf(stderr, "Is --%s meant? ", n.name);
	fputs("Try 'execctl --help'.\n", stderr);
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
			say_what_was_meant(r, argv);
			return -1;
		}
		p->given =
		    xreallocarray(p->given, p->ngiven + 1, sizeof(*p->given));
		p->given[p->ngiven++] =
		    (struct given){ row, row->value ? optarg : "" };
	}
	return optind;
}

/* What others call it. */
static const char *
called_here(const char *name)
{
	static const char *const names[][2] = { { "forward", "run -L" },
		{ "exec", "run" }, { "ssh", "shell" }, { "copy", "cp" },
		{ "scp", "cp" }, { "stop", "kill" }, { "list", "ps" },
		{ "version", "--version" }, { "rename", "mv" },
		{ "delete", "rm" }, { "vi", "edit" }, { "vim", "edit" },
		{ "nano", "edit" }, { "top", "run top" },
		{ "env", "environments" }, { "tunnel", "run -L" },
		{ "port", "run -L" }, { "rsync", "cp -r" },
		{ "inspect", "ps --json" }, { "tail", "logs" },
		{ "token", "--token-file" } };

	for (size_t i = 0; i < nitems(names); i++)
		if (strcmp(names[i][0], name) == 0)
			return names[i][1];
	return NULL;
}

/* NULL after a message. */
static const struct command *
find_command(const char *name)
{
	struct nearest n = { .given = name, .name = called_here(name) };

	for (const struct command *c = commands; c->name != NULL; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
		nearest_try(&n, c->name);
	}
	fprintf(stderr, "execctl: there is no command `%s'", name);
	if (n.name != NULL)
		fprintf(stderr, "; is `%s' meant?", n.name);
	else
		fprintf(stderr, "; one of the server: execctl run %s", name);
	fputs("\nTry 'execctl --help'.\n", stderr);
	return NULL;
}

static int
check_arguments(const struct parsed *p)
{
	const struct command *c = p->command;

	if (p->narguments >= c->min_arguments &&
	    (c->max_arguments < 0 || p->narguments <= c->max_arguments))
		return 0;
	if (c->max_arguments >= 0 && p->narguments > c->max_arguments)
		fprintf(stderr, "execctl: %s takes no `%s'%s\n", c->name,
		    p->arguments[c->max_arguments],
		    strcmp(c->name, "shell") == 0
			? "; a command is run by: execctl run -t COMMAND"
			: "");
	fprintf(stderr, "usage: execctl [options] %s [options]%s%s\n", c->name,
	    c->arguments[0] != '\0' ? " " : "", c->arguments);
	return EXIT_CTL_USAGE;
}

/* Makes --signal=9 of -9, and --signal=INT of -INT, as kill(1) takes them. */
static void
take_signal(struct parsed *p, int argc, char **argv)
{
	const struct option_row *row = p->command->options;

	while (row != NULL && row->name != NULL &&
	       strcmp(row->name, "signal") != 0)
		row++;
	if (row == NULL || row->name == NULL)
		return;
	for (int i = 1; i < argc && p->made == NULL; i++)
		if (argv[i][0] == '-' &&
		    (isdigit((unsigned char)argv[i][1]) ||
			isupper((unsigned char)argv[i][1])))
			argv[i] = p->made =
			    xasprintf("--signal=%s", argv[i] + 1);
}

/* NULL: all commands. */
static void help_print(const struct command *command);

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

/* `execctl help COMMAND', as git and docker have it. NULL: of all commands. */
static int
help(const char *name)
{
	const struct command *c = name != NULL ? find_command(name) : NULL;

	if (name != NULL && c == NULL)
		return EXIT_CTL_USAGE;
	help_print(c);
	return 0;
}

int
options_parse(struct parsed *p, const struct option_row *options,
    const struct command *all, int argc, char **argv)
{
	struct rows before = { .letters = "+" }, behind = { 0 };
	int at;

	*p = (struct parsed){ 0 };
	global_options = options;
	commands = all;
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
	if (strcmp(argv[at], "help") == 0)
		return help(argv[at + 1]);
	p->command = find_command(argv[at]);
	if (p->command == NULL)
		return EXIT_CTL_USAGE;
	strcpy(behind.letters, p->command->stops ? "+" : "");
	/* The command's own come first: -h of ls is none of --help. */
	add_rows(&behind, p->command->options);
	add_rows(&behind, global_options);
	/* getopt_long(3) begins its messages with argv[0]. */
	argc -= at;
	argv += at;
	argv[0] = program_invocation_short_name;
	take_signal(p, argc, argv);
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
	free(p->made);
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

/* Takes one number with its unit, which is smaller than that of the part
 * before: units[] has the smallest first. */
static bool
take_part(const char **text, uint64_t *below, uint64_t *ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 },
		{ "h", 3600000 } };
	unsigned long long n;
	size_t len, i = 0;
	char *end;

	errno = 0;
	n = strtoull(*text, &end, 10);
	if (**text < '0' || **text > '9' || errno != 0 || n > UINT32_MAX)
		return false;
	len = strcspn(end, "0123456789");
	if (len == 0) {
		/* A number alone is in seconds. */
		*ms = n * 1000;
		*text = end;
		return *end == '\0' && *below == UINT64_MAX;
	}
	while (i < nitems(units) && (strlen(units[i].unit) != len ||
					strncmp(end, units[i].unit, len) != 0))
		i++;
	if (i == nitems(units) || units[i].ms >= *below)
		return false;
	*ms = n * units[i].ms;
	*below = units[i].ms;
	*text = end + len;
	return true;
}

int
option_duration(const char *text, uint64_t *ms)
{
	*ms = 0;
	for (uint64_t part, below = UINT64_MAX; *text != '\0'; *ms += part)
		if (!take_part(&text, &below, &part))
			return -EINVAL;
	return *ms > 0 ? 0 : -EINVAL;
}

/*
 * Writes --help and the shell completions from the tables.
 */

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

static void
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

/* These options say which server it is. A path of the server is completed by
 * `execctl completion paths', with these of the line. */
#define SERVER_WITH_VALUE                                                      \
	"-e|-u|--environment|--url|--token-file|--ca|--certificate|--key"
#define SERVER_WITH_SIGN                                                       \
	"-e?*|-u?*|--environment=*|--url=*|--token-file=*|--ca=*|"             \
	"--certificate=*|--key=*"

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
	     "\tlocal word command= options= remote=");
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
		printf("'%s ;;\n",
		    c->completes == COMPLETES_PATH   ? " remote=all"
		    : c->completes == COMPLETES_FILE ? " remote=colon"
						     : "");
	}
	printf("\tesac\n\tcase $prev in\n\t\"\"");
	bash_values(global_options);
	for (const struct command *c = commands; c->name != NULL; c++)
		bash_values(c->options);
	puts(") return ;;\n\tesac\n"
	     "\tword=${COMP_LINE:0:COMP_POINT}\n"
	     "\tword=${word##*[[:space:]]}\n"
	     "\tif [[ $cur == -* ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$all $options\" -- "
	     "\"$cur\")\n"
	     "\telif [[ -z $command ]]; then\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -W \"$commands\" -- "
	     "\"$cur\")\n"
	     "\telif [[ $remote == all || ( $remote == colon && "
	     "${word//[^:\\/]/} == :* ) ]]; then\n"
	     "\t\t_execctl_paths \"$word\"\n"
	     "\telse\n"
	     "\t\tcompopt -o filenames\n"
	     "\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	     "\tfi\n}\n"
	     "\n# For bash a word ends at a colon.\n_execctl_paths()\n{\n"
	     "\tlocal -a words server=()\n\tlocal i\n"
	     "\tread -ra words <<<\"${COMP_LINE:0:COMP_POINT}\"\n"
	     "\tfor ((i = 1; i < ${#words[@]}; i++)); do\n"
	     "\t\tcase ${words[i]} in\n"
	     "\t\t" SERVER_WITH_VALUE
	     ") server+=(\"${words[i]}\" \"${words[++i]}\") ;;\n"
	     "\t\t" SERVER_WITH_SIGN ") server+=(\"${words[i]}\") ;;\n"
	     "\t\tesac\n\tdone\n"
	     "\tmapfile -t COMPREPLY < <(\"${COMP_WORDS[0]}\" -q "
	     "\"${server[@]}\" completion paths \"$1\" 2>/dev/null)\n"
	     "\t[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} != */ ]] || "
	     "compopt -o nospace\n"
	     "\tfor i in \"${!COMPREPLY[@]}\"; do\n"
	     "\t\tprintf -v \"COMPREPLY[i]\" %q "
	     "\"${COMPREPLY[i]#\"${1%\"${1##*:}\"}\"}\"\n"
	     "\tdone\n}\ncomplete -F _execctl execctl");
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
	     "\tlocal -a commands execctl_words\n\tlocal state line\n"
	     "\texecctl_words=(\"${words[@]}\")\n\tcommands=(");
	for (const struct command *c = commands; c->name != NULL; c++) {
		printf("\t\t'%s:", c->name);
		put_quoted(c->help, ":");
		puts("'");
	}
	puts("\t)\n\t_arguments -C -A '-*' \\");
	zsh_options(global_options, "\t\t");
	puts("\t\t'1:command:{_describe command commands}' \\\n"
	     "\t\t'*::argument:->rest'\n"
	     "\t[[ $state == rest ]] || return\n\tcase $words[1] in");
	for (const struct command *c = commands; c->name != NULL; c++) {
		printf("\t%s)\n\t\t_arguments \\\n", c->name);
		zsh_options(c->options, "\t\t\t");
		zsh_options(global_options, "\t\t\t");
		printf("\t\t\t'*:argument:%s' ;;\n",
		    c->completes == COMPLETES_FILE   ? " _execctl_paths colon"
		    : c->completes == COMPLETES_PATH ? " _execctl_paths all"
		    : c->completes == COMPLETES_COMMAND ? "_normal"
							: " ");
	}
	puts("\tesac\n}\n\n_execctl_paths() {\n"
	     "\tlocal -a server found\n\tlocal i\n"
	     "\tif [[ $1 == colon && ${PREFIX//[^:\\/]/} != :* ]]; then\n"
	     "\t\t_files\n\t\treturn\n\tfi\n"
	     "\tfor ((i = 2; i < ${#execctl_words}; i++)); do\n"
	     "\t\tcase $execctl_words[i] in\n"
	     "\t\t" SERVER_WITH_VALUE
	     ") server+=($execctl_words[i] $execctl_words[++i]) ;;\n"
	     "\t\t" SERVER_WITH_SIGN ") server+=($execctl_words[i]) ;;\n"
	     "\t\tesac\n\tdone\n"
	     "\tfound=(${(f)\"$($execctl_words[1] -q $server completion paths "
	     "\"${(Q)PREFIX}\" 2>/dev/null)\"})\n"
	     "\tcompadd -S '' -- ${(M)found:#*/}\n"
	     "\tcompadd -- ${found:#*/}\n}\n\n_execctl \"$@\"");
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
	     "fish'.\nfunction __execctl_paths\n"
	     "\tset -l word (commandline -ct)\n"
	     "\tset -l words (commandline -opc)\n\tset -l server\n"
	     "\tif test \"$argv[1]\" = colon\n"
	     "\t\tstring match -qr '^[^/:]*:' -- $word; or return\n\tend\n"
	     "\tfor i in (seq 2 (count $words))\n"
	     "\t\tif string match -qr "
	     "'^(" SERVER_WITH_VALUE ")$' -- $words[$i]\n"
	     "\t\t\tset -a server $words[$i] $words[(math $i + 1)]\n"
	     "\t\telse if string match -qr '^(-[eu].|--(environment|url|"
	     "token-file|ca|certificate|key)=)' -- $words[$i]\n"
	     "\t\t\tset -a server $words[$i]\n\t\tend\n\tend\n"
	     "\t$words[1] -q $server completion paths \"$word\" 2>/dev/null\n"
	     "end");
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
		if (c->completes == COMPLETES_PATH)
			printf("complete -c execctl%s -f -a "
			       "'(__execctl_paths all)'\n",
			    condition);
		else if (c->completes == COMPLETES_FILE)
			printf("complete -c execctl%s -a "
			       "'(__execctl_paths colon)'\n",
			    condition);
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
