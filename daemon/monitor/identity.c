/*
 * Who a session's commands run as.
 */
#include "identity.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define GROUPS_MAX 65536

/* Belong to execd's own login or service, not to the session's user. */
static const char *const dropped_names[] = { "HOME", "USER", "LOGNAME", "SHELL",
	"MAIL", "XDG_RUNTIME_DIR", "SUDO_COMMAND", "SUDO_USER", "SUDO_UID",
	"SUDO_GID", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
	"INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_FDS", "LISTEN_PID",
	"LISTEN_FDNAMES" };

static bool
is_dropped(const char *entry)
{
	for (size_t i = 0; i < nitems(dropped_names); i++) {
		size_t n = strlen(dropped_names[i]);

		if (!strncmp(entry, dropped_names[i], n) && entry[n] == '=')
			return true;
	}
	return false;
}

/* execd's environment, with the variables that name the user replaced. */
static char **
environment_for(const struct identity *id)
{
	size_t n = 0, count = 0;
	char **env;

	while (environ[count] != NULL)
		count++;
	env = xcalloc(count + 5, sizeof(char *));
	env[n++] = xasprintf("HOME=%s", id->home);
	env[n++] = xasprintf("USER=%s", id->name);
	env[n++] = xasprintf("LOGNAME=%s", id->name);
	env[n++] = xasprintf("SHELL=%s", id->shell);
	for (size_t i = 0; i < count; i++)
		if (!is_dropped(environ[i]))
			env[n++] = xstrdup(environ[i]);
	return env;
}

static char **
environment_copy(void)
{
	size_t count = 0;
	char **env;

	while (environ[count] != NULL)
		count++;
	env = xcalloc(count + 1, sizeof(char *));
	for (size_t i = 0; i < count; i++)
		env[i] = xstrdup(environ[i]);
	return env;
}

static int
load_groups(struct identity *id)
{
	int n = 32;

	for (;;) {
		int want = n;

		id->groups =
		    xreallocarray(id->groups, (size_t)n, sizeof(gid_t));
		if (getgrouplist(id->name, id->gid, id->groups, &want) >= 0) {
			id->ngroups = (size_t)want;
			return 0;
		}
		if (n >= GROUPS_MAX)
			return -E2BIG;
		n = want > n ? want : n * 2;
	}
}

static void
take_passwd(struct identity *id, const struct passwd *pw)
{
	id->name = xstrdup(pw->pw_name);
	id->uid = pw->pw_uid;
	id->gid = pw->pw_gid;
	id->home =
	    xstrdup(pw->pw_dir && pw->pw_dir[0] == '/' ? pw->pw_dir : "/");
	id->shell = xstrdup(
	    pw->pw_shell && pw->pw_shell[0] == '/' ? pw->pw_shell : "/bin/sh");
}

int
identity_from_name(struct identity *id, const char *name)
{
	struct passwd *pw;

	*id = (struct identity){ 0 };
	errno = 0;
	pw = getpwnam(name);
	if (pw == NULL)
		return errno ? -errno : -ENOENT;
	if (pw->pw_uid == 0)
		return -EPERM;
	take_passwd(id, pw);
	id->env = environment_for(id);
	return load_groups(id);
}

int
identity_self(struct identity *id)
{
	struct passwd *pw = getpwuid(getuid());
	const char *home = getenv("HOME");

	*id = (struct identity){ 0 };
	if (pw != NULL) {
		take_passwd(id, pw);
	} else {
		id->name = xasprintf("%u", getuid());
		id->uid = getuid();
		id->gid = getgid();
		id->home = xstrdup("/");
		id->shell = xstrdup("/bin/sh");
	}
	if (home != NULL && home[0] == '/') {
		free(id->home);
		id->home = xstrdup(home);
	}
	id->env = environment_copy();
	return 0;
}

void
identity_clear(struct identity *id)
{
	for (char **e = id->env; e && *e; e++)
		free(*e);
	free(id->env);
	free(id->name);
	free(id->groups);
	free(id->home);
	free(id->shell);
	*id = (struct identity){ 0 };
}
