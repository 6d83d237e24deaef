/* SPDX-License-Identifier: ISC */
/*
 * What CreateProcess gets of text: the program, which is looked for along the
 * command's own PATH and not the runner's; its line; its directory; and its
 * environment.
 */
#include "base.h"
#include "command_line.h"
#include "host_windows.h"
#include "start_windows.h"
#include "wide_text.h"

/* The longest path that is looked for, in bytes of UTF-8. */
#define PROGRAM_MAX 4096

static const char *const extensions[] = { ".com", ".exe", ".bat", ".cmd" };

/* --- the program -------------------------------------------------------- */

static bool
is_file(const char *path)
{
	_cleanup_free_ WCHAR *wide = wide_of_utf8(path);
	DWORD kind =
	    wide == NULL ? INVALID_FILE_ATTRIBUTES : GetFileAttributesW(wide);

	return kind != INVALID_FILE_ATTRIBUTES &&
	       !(kind & FILE_ATTRIBUTE_DIRECTORY);
}

static bool
has_extension(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && strpbrk(dot, "\\/") == NULL;
}

/* Returns the path of a file with this name, or NULL. */
static char *
try_names(const char *path)
{
	if (has_extension(path) && is_file(path))
		return xstrdup(path);
	for (size_t i = 0; i < nitems(extensions); i++) {
		char *longer = xasprintf("%s%s", path, extensions[i]);

		if (is_file(longer))
			return longer;
		free(longer);
	}
	return NULL;
}

static char *
try_directory(const char *dir, size_t len, const char *name)
{
	_cleanup_free_ char *path = NULL;

	/* Only what no directory of the command can change the meaning of. */
	if (!host_path_is_absolute((struct slice){ dir, len }))
		return NULL;
	path = xasprintf("%.*s\\%s", (int)len, dir, name);
	return try_names(path);
}

/* A name of the environment is the same in capitals. */
static const char *
get_variable(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp != NULL; envp++)
		if (!_strnicmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

static char *
system_program(const char *name)
{
	char dir[MAX_PATH];
	UINT n = GetSystemDirectoryA(dir, sizeof(dir));

	return n == 0 || n >= sizeof(dir) ? NULL : try_directory(dir, n, name);
}

/*
 * A file of no bytes that only Windows itself can follow, to a program of the
 * Store. A restricted token cannot start it, and often it only opens the Store.
 */
static bool
is_execution_alias(const char *path)
{
	_cleanup_free_ WCHAR *wide = wide_of_utf8(path);
	WIN32_FIND_DATAW data;
	HANDLE found = FindFirstFileW(wide, &data);

	if (found == INVALID_HANDLE_VALUE)
		return false;
	FindClose(found);
	return (data.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) &&
	       data.dwReserved0 == IO_REPARSE_TAG_APPEXECLINK;
}

static char *
along_path(const char *path, const char *name)
{
	while (path != NULL && *path != '\0') {
		size_t n = strcspn(path, ";");
		char *found = try_directory(path, n, name);

		if (found != NULL && !is_execution_alias(found))
			return found;
		free(found);
		path += n + (path[n] != '\0');
	}
	return system_program(name);
}

/* Returns the path of the program, which the caller frees, or NULL. */
static char *
find_program(const struct command_request *r)
{
	const char *name = r->argv[0];
	_cleanup_free_ char *path = NULL;

	if (*name == '\0' || strlen(name) > PROGRAM_MAX)
		return NULL;
	if (strpbrk(name, "\\/:") == NULL)
		return along_path(get_variable(r->envp, "PATH"), name);
	if (host_path_is_absolute((struct slice){ name, strlen(name) }))
		return try_names(name);
	/* "C:name" and "\name" depend on what only the runner has. */
	if (strchr(name, ':') != NULL || *name == '\\' || *name == '/')
		return NULL;
	path = xasprintf("%s\\%s", r->cwd, name);
	return try_names(path);
}

/* --- its line ----------------------------------------------------------- */

static bool
build_line(const struct command_request *r, const char *found,
    const char *shell, struct program *p, struct command_error *e)
{
	char why[COMMAND_LINE_ERROR_MAX];
	struct buf line;
	int err;

	buf_init(&line, COMMAND_LINE_MAX * 3);
	err = command_line_build(&line, found, shell, r->argv, why);
	buf_put(&line, "", 1);
	if (err == 0 && !line.failed)
		p->line = wide_of_utf8((const char *)line.data);
	buf_clear(&line);
	if (err < 0)
		return start_failed(
		    e, CODE_SPAWN, why, ERROR_INVALID_PARAMETER);
	if (p->line == NULL || wcslen(p->line) >= COMMAND_LINE_MAX)
		return start_failed(e, CODE_SPAWN,
		    "the command line has more than 32766 characters",
		    ERROR_FILENAME_EXCED_RANGE);
	return true;
}

/* A batch file is started by the system's own cmd.exe. */
static bool
set_program(
    const struct command_request *r, struct program *p, struct command_error *e)
{
	_cleanup_free_ char *found = find_program(r);
	_cleanup_free_ char *shell = NULL;
	bool batch = found != NULL && command_line_is_batch(found);

	if (batch)
		shell = system_program("cmd.exe");
	if (found == NULL || (batch && shell == NULL))
		return start_failed(e, CODE_SPAWN, "the program is not found",
		    ERROR_FILE_NOT_FOUND);
	if (!build_line(r, found, shell, p, e))
		return false;
	p->path = wide_of_utf8(batch ? shell : found);
	return p->path != NULL ||
	       start_failed(e, CODE_SPAWN, "the program's name",
		   ERROR_NO_UNICODE_TRANSLATION);
}

/* --- its environment ---------------------------------------------------- */

/* The first character of a name may be '=', as in "=C:". */
static int
name_length(const WCHAR *variable)
{
	const WCHAR *end = *variable != 0 ? wcschr(variable + 1, L'=') : NULL;

	return end != NULL ? (int)(end - variable) : 0;
}

static int
compare_names(const void *a, const void *b)
{
	const WCHAR *x = *(WCHAR *const *)a, *y = *(WCHAR *const *)b;

	return CompareStringOrdinal(
		   x, name_length(x), y, name_length(y), TRUE) -
	       CSTR_EQUAL;
}

/* Windows looks a name up without its case, so two of them would be one. */
static const char *
check_names(WCHAR **sorted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (name_length(sorted[i]) == 0)
			return "env: a name is empty";
		if (i > 0 && compare_names(&sorted[i - 1], &sorted[i]) == 0)
			return "env: two names differ by their case only";
	}
	return NULL;
}

/* Windows wants them sorted, each with its NUL, and a NUL behind the last. */
static WCHAR *
join(WCHAR **sorted, size_t n)
{
	size_t units = 2, at = 0;
	WCHAR *block;

	for (size_t i = 0; i < n; i++)
		units += wcslen(sorted[i]) + 1;
	block = xcalloc(units, sizeof(*block));
	for (size_t i = 0; i < n; i++) {
		size_t len = wcslen(sorted[i]) + 1;

		memcpy(block + at, sorted[i], len * sizeof(*block));
		at += len;
	}
	return block;
}

/* Without it no program of Windows finds sockets, and PowerShell ends. */
static WCHAR *
system_root(void)
{
	static const WCHAR name[] = L"SystemRoot=";
	WCHAR *variable = xcalloc(nitems(name) + MAX_PATH, sizeof(WCHAR));

	wcscpy(variable, name);
	GetSystemWindowsDirectoryW(variable + wcslen(name), MAX_PATH);
	return variable;
}

static bool
set_environment(char *const *envp, struct program *p, struct command_error *e)
{
	const char *wrong;
	WCHAR **list;
	size_t n = 0;

	while (envp[n] != NULL)
		n++;
	list = xcalloc(n + 1, sizeof(*list));
	for (size_t i = 0; i < n; i++) {
		list[i] = wide_of_utf8(envp[i]);
		if (list[i] == NULL)
			list[i] = xcalloc(1, sizeof(WCHAR));
	}
	if (get_variable(envp, "SystemRoot") == NULL)
		list[n++] = system_root();
	qsort(list, n, sizeof(*list), compare_names);
	wrong = check_names(list, n);
	if (wrong == NULL)
		p->environment = join(list, n);
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
	return wrong == NULL ||
	       start_failed(e, CODE_SPAWN, wrong, ERROR_INVALID_PARAMETER);
}

void
program_clear(struct program *p)
{
	free(p->path);
	free(p->line);
	free(p->cwd);
	free(p->environment);
}

bool
program_prepare(
    const struct command_request *r, struct program *p, struct command_error *e)
{
	*p = (struct program){ .cwd = wide_of_utf8(r->cwd) };
	if (p->cwd != NULL && set_program(r, p, e) &&
	    set_environment(r->envp, p, e))
		return true;
	if (p->cwd == NULL)
		start_failed(e, CODE_SPAWN, "the working directory",
		    ERROR_NO_UNICODE_TRANSLATION);
	program_clear(p);
	return false;
}
