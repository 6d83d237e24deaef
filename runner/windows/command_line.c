/* SPDX-License-Identifier: ISC */
/*
 * The command line of Windows.
 */
#include "command_line.h"

static const char *
base_name(const char *program)
{
	const char *base = program;

	for (const char *p = program; *p != '\0'; p++)
		if (*p == '\\' || *p == '/' || *p == ':')
			base = p + 1;
	return base;
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
same(const char *a, const char *b)
{
	while (*a != '\0' && lower(*a) == lower(*b))
		a++, b++;
	return lower(*a) == lower(*b);
}

bool
command_line_is_cmd(const char *program)
{
	const char *base = base_name(program);

	return same(base, "cmd") || same(base, "cmd.exe");
}

/* Windows drops blanks and dots at the end of a name. */
bool
command_line_is_batch(const char *program)
{
	size_t n = strlen(program);
	char end[5];

	while (n > 0 && (program[n - 1] == ' ' || program[n - 1] == '.'))
		n--;
	if (n < 4)
		return false;
	memcpy(end, program + n - 4, 4);
	end[4] = '\0';
	return same(end, ".bat") || same(end, ".cmd");
}

static void
put_char(struct buf *out, char c)
{
	buf_put(out, &c, 1);
}

/*
 * Backslashes are doubled only where a quote follows them, and a quote gets a
 * backslash. What has no blank and no quote needs none of this.
 */
static void
put_argument(struct buf *out, const char *arg)
{
	size_t slashes = 0;

	if (*arg != '\0' && strpbrk(arg, " \t\n\v\"") == NULL) {
		buf_puts(out, arg);
		return;
	}
	put_char(out, '"');
	for (const char *p = arg; *p != '\0'; p++) {
		if (*p == '"')
			for (size_t i = 0; i < slashes + 1; i++)
				put_char(out, '\\');
		slashes = *p == '\\' ? slashes + 1 : 0;
		put_char(out, *p);
	}
	for (size_t i = 0; i < slashes; i++)
		put_char(out, '\\');
	put_char(out, '"');
}

/* A path has no quote in it, and the rules for a program know no backslash. */
static int
put_program(struct buf *out, const char *program, char *error)
{
	if (strchr(program, '"') != NULL) {
		snprintf(error, COMMAND_LINE_ERROR_MAX,
		    "the program's name has a quote in it");
		return -EINVAL;
	}
	put_char(out, '"');
	buf_puts(out, program);
	put_char(out, '"');
	return 0;
}

/* Refuses an argument with one of these characters. */
static int
check(const char *arg, const char *bad, const char *what, char *error)
{
	const char *at = strpbrk(arg, bad);

	if (at == NULL)
		return 0;
	snprintf(error, COMMAND_LINE_ERROR_MAX,
	    "%s: the character 0x%02x in an argument would change its meaning",
	    what, (unsigned char)*at);
	return -EINVAL;
}

/*
 * cmd.exe reads the line before the batch file does: in quotes only these
 * characters keep a meaning, and no escape takes it away.
 */
static int
put_batch(struct buf *out, const char *program, const char *shell,
    char *const *argv, char *error)
{
	int err = check(program, "%!", "a batch file", error);

	if (err == 0)
		err = put_program(out, shell, error);
	buf_puts(out, " /d /s /c \"");
	if (err == 0)
		err = put_program(out, program, error);
	for (char *const *a = argv + 1; err == 0 && *a != NULL; a++) {
		err = check(*a, "\"%!\r\n", "a batch file", error);
		buf_puts(out, " \"");
		buf_puts(out, *a);
		put_char(out, '"');
	}
	put_char(out, '"');
	return err;
}

static bool
is_last_switch(const char *arg)
{
	return same(arg, "/c") || same(arg, "/k");
}

/* Returns the /c or /k, or NULL if another argument comes first. */
static char *const *
find_switch(char *const *argv)
{
	char *const *a = argv + 1;

	while (*a != NULL && **a == '/' && !is_last_switch(*a))
		a++;
	return *a != NULL && is_last_switch(*a) ? a : NULL;
}

/*
 * What follows /c is text in the language of cmd.exe, which knows no \". With
 * /s it takes away the first quote and the last, and nothing else.
 */
static int
put_cmd(struct buf *out, char *const *argv, char *const *last, char *error)
{
	char *const *a = argv + 1;
	int err = 0;

	for (; a < last; a++) {
		put_char(out, ' ');
		buf_puts(out, *a);
		err = err < 0 ? err : check(*a, "\" \t\r\n", "cmd", error);
	}
	buf_puts(out, " /s ");
	buf_puts(out, *last);
	buf_puts(out, " \"");
	for (a = last + 1; *a != NULL; a++) {
		if (a > last + 1)
			put_char(out, ' ');
		buf_puts(out, *a);
		err = err < 0 ? err : check(*a, "\r\n", "cmd", error);
	}
	put_char(out, '"');
	return err;
}

int
command_line_build(struct buf *out, const char *program, const char *shell,
    char *const *argv, char *error)
{
	char *const *last;
	int err;

	if (command_line_is_batch(program))
		return put_batch(out, program, shell, argv, error);
	err = put_program(out, program, error);
	if (err < 0)
		return err;
	last = command_line_is_cmd(program) ? find_switch(argv) : NULL;
	if (last != NULL)
		return put_cmd(out, argv, last, error);
	for (char *const *a = argv + 1; *a != NULL; a++) {
		put_char(out, ' ');
		put_argument(out, *a);
	}
	return 0;
}
