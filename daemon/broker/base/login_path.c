/* SPDX-License-Identifier: ISC */
#include "login_path.h"

#include "base.h"

#define BLANKS " \t\r\n"

/* Opens etc/name. NULL: there is none that can be read. */
static FILE *
open_in(const char *etc, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", etc, name);

	return fopen(path, "re");
}

/* Where these begin a login: Debian's and Red Hat's login and sshd, and what
 * they include there and in SUSE. */
static const char *const services[] = { "login", "sshd", "system-auth",
	"common-auth", "common-session" };

/* pam_env(8) reads the file unless a line of it says another one, or
 * readenv=0. */
static bool
reads_environment(const char *etc, const char *service)
{
	_cleanup_free_ char *name = xasprintf("pam.d/%s", service);
	_cleanup_free_ char *line = NULL;
	FILE *f = open_in(etc, name);
	size_t cap = 0;
	bool reads = false;

	while (f != NULL && !reads && getline(&line, &cap, f) >= 0)
		reads = line[strspn(line, BLANKS)] != '#' &&
			strstr(line, "pam_env.so") != NULL &&
			strstr(line, "readenv=0") == NULL &&
			strstr(line, "envfile=") == NULL;
	if (f != NULL)
		fclose(f);
	return reads;
}

static bool
is_read(const char *etc)
{
	for (size_t i = 0; i < nitems(services); i++)
		if (reads_environment(etc, services[i]))
			return true;
	return false;
}

/* Returns the value of a line that begins with key and one of the separators,
 * or NULL. The text of the line is cut behind it. */
static const char *
value_of(char *line, const char *key, const char *separators)
{
	size_t n = strlen(key), len;

	line += strspn(line, BLANKS);
	if (strncmp(line, "export ", 7) == 0)
		line += 7;
	if (strncmp(line, key, n) != 0 || line[n] == '\0' ||
	    strchr(separators, line[n]) == NULL)
		return NULL;
	line += n + strspn(line + n, separators);
	len = strcspn(line, "#\"" BLANKS);
	if (line[0] == '"' || line[0] == '\'') {
		char quote = *line++;

		len = strcspn(line, (char[]){ quote, '\n', '\0' });
	}
	line[len] = '\0';
	return line;
}

/* The last line with the key counts, as it does for login(1) and PAM. */
static char *
find_value(
    const char *etc, const char *name, const char *key, const char *separators)
{
	_cleanup_free_ char *line = NULL;
	FILE *f = open_in(etc, name);
	char *found = NULL;
	const char *value;
	size_t cap = 0;

	while (f != NULL && getline(&line, &cap, f) >= 0) {
		value = value_of(line, key, separators);
		if (value == NULL)
			continue;
		free(found);
		found = xstrdup(
		    strncmp(value, "PATH=", 5) == 0 ? value + 5 : value);
	}
	if (f != NULL)
		fclose(f);
	return found;
}

char *
login_path(const char *etc)
{
	char *path =
	    is_read(etc) ? find_value(etc, "environment", "PATH", "=") : NULL;

	if (path == NULL)
		path = find_value(etc, "login.defs", "ENV_PATH", " \t=\"");
	if (path != NULL && path[0] == '\0') {
		free(path);
		path = NULL;
	}
	return path;
}
