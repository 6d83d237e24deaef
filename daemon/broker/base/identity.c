/* SPDX-License-Identifier: ISC */
#include "identity.h"

#include <grp.h>
#include <pwd.h>

#include "audit_log.h"
#include "login_path.h"
#include "spawn_client.h"

#define GROUPS_MAX 65536

/* How long a session may be kept without a client, unless the operator says
 * otherwise. Who shares a user with others shares what a session holds. */
#define KEEP_OF_USER_MS	  (24 * 3600 * 1000)
#define KEEP_OF_SHARED_MS (3600 * 1000)
#define KEEP_UNSET	  UINT32_MAX

/* The only variables that a session of another user takes from root's
 * environment. All others belong to root, and one may be a secret. */
static const char *const kept_names[] = { "PATH", "LANG", "LANGUAGE", "TZ",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "EXECD_DEBUG", "ASAN_OPTIONS",
	"UBSAN_OPTIONS", "LSAN_OPTIONS" };

static bool
is_named(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

static bool
is_kept(const char *entry, bool another)
{
	/* By which execd's programs find each other. */
	if (is_named(entry, SPAWN_CHANNEL_VARIABLE))
		return false;
	if (!another || strncmp(entry, "LC_", 3) == 0)
		return true;
	for (size_t i = 0; i < nitems(kept_names); i++)
		if (is_named(entry, kept_names[i]))
			return true;
	return false;
}

static bool
is_replaced(const struct identity *id, const char *entry)
{
	size_t n = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < id->environment.count; i++)
		if (!strncmp(id->environment.items[i], entry, n))
			return true;
	return false;
}

/* Makes the environment. A session of root's execd gets only the variables
 * above and the PATH of a login, any other gets all of execd's environment. The
 * operator's variables are added. */
static void
make_environment(struct identity *id, bool another)
{
	_cleanup_free_ char *path = another ? login_path("/etc") : NULL;
	size_t n = 0, count = 0;
	char **env;

	while (environ[count] != NULL)
		count++;
	env = xcalloc(count + id->environment.count + 6, sizeof(char *));
	if (another) {
		env[n++] = xasprintf("HOME=%s", id->home);
		env[n++] = xasprintf("USER=%s", id->user_name);
		env[n++] = xasprintf("LOGNAME=%s", id->user_name);
		env[n++] = xasprintf("SHELL=%s", id->shell);
	}
	if (path != NULL && !is_replaced(id, "PATH="))
		env[n++] = xasprintf("PATH=%s", path);
	for (size_t i = 0; i < count; i++)
		if (is_kept(environ[i], another) &&
		    !is_replaced(id, environ[i]) &&
		    !(path != NULL && is_named(environ[i], "PATH")))
			env[n++] = xstrdup(environ[i]);
	for (size_t i = 0; i < id->environment.count; i++)
		env[n++] = xstrdup(id->environment.items[i]);
	id->env = env;
}

/* --- the object --------------------------------------------------------- */

struct identity *
identity_new(const char *name)
{
	struct identity *id = xcalloc(1, sizeof(*id));

	id->name = xstrdup(name);
	id->refs = 1;
	id->umask = CONF_MODE_UNSET;
	id->limits.max_detached_ttl_ms = KEEP_UNSET;
	id->userns = -1;
	id->audit_files = AUDIT_FILES_UNSET;
	id->record.max_bytes = RECORD_MAX_BYTES;
	sandbox_rules_init(&id->sandbox);
	group_limits_init(&id->limits.together);
	group_limits_init(&id->limits.command);
	return id;
}

struct identity *
identity_ref(struct identity *id)
{
	id->refs++;
	return id;
}

void
identity_unref(struct identity *id)
{
	if (id == NULL || --id->refs > 0)
		return;
	if (id->userns >= 0)
		close(id->userns);
	for (char **e = id->env; e && *e; e++)
		free(*e);
	free(id->env);
	free(id->name);
	free(id->of);
	free(id->peer_group);
	free(id->user);
	free(id->group);
	free(id->record.directory);
	free(id->home);
	free(id->shell);
	free(id->user_name);
	free(id->gids);
	free(id->peer_uids);
	free(id->tokens.items);
	free(id->certificates.items);
	strings_clear(&id->groups);
	strings_clear(&id->environment);
	strings_clear(&id->subjects);
	strings_clear(&id->peer_users);
	strings_clear(&id->certificate_subjects);
	sandbox_rules_clear(&id->sandbox);
	path_map_clear(&id->path_map);
	free(id);
}

bool
identity_is(const struct identity *a, const struct identity *b)
{
	return a == b || (a->uid == b->uid && strcmp(a->name, b->name) == 0);
}

bool
identity_is_named(const struct identity *id, const struct strings *names)
{
	return strings_has(names, id->name) ||
	       (id->of != NULL && strings_has(names, id->of));
}

/* --- the user ----------------------------------------------------------- */

void
identity_is_nobodys(struct identity *id, const char *user_name)
{
	id->user_name = xstrdup(user_name);
	id->uid = IDENTITY_GONE;
}

int
identity_load_groups(struct identity *id)
{
	int n = 32;

	for (;;) {
		int want = n;

		id->gids = xreallocarray(id->gids, (size_t)n, sizeof(gid_t));
		if (getgrouplist(id->user_name, id->gid, id->gids, &want) >=
		    0) {
			id->ngids = (size_t)want;
			return 0;
		}
		if (n >= GROUPS_MAX)
			return -E2BIG;
		n = want > n ? want : n * 2;
	}
}

static int
find_group(const char *key, const char *name, gid_t *gid, char *why)
{
	const struct group *gr = getgrnam(name);

	if (gr == NULL)
		return conf_refuse(why, "%s: %.100s: no such group", key, name);
	*gid = gr->gr_gid;
	return 0;
}

/* Takes the groups that the operator names instead of the user's. */
static int
take_groups(struct identity *id, char *why)
{
	int err = 0;

	if (id->group != NULL)
		err = find_group("group", id->group, &id->gid, why);
	if (err < 0)
		return err;
	if (id->groups.count == 0) {
		err = identity_load_groups(id);
		return err < 0 ? conf_refuse(why, "too many groups") : 0;
	}
	id->ngids = id->groups.count + 1;
	id->gids = xreallocarray(NULL, id->ngids, sizeof(gid_t));
	id->gids[0] = id->gid;
	for (size_t i = 0; i < id->groups.count && err == 0; i++)
		err = find_group(
		    "groups", id->groups.items[i], &id->gids[i + 1], why);
	return err;
}

/* Takes the user's home and shell, unless the operator names others. */
static void
take_passwd(struct identity *id, const struct passwd *pw)
{
	id->user_name = xstrdup(pw->pw_name);
	id->uid = pw->pw_uid;
	id->gid = pw->pw_gid;
	if (id->home == NULL && pw->pw_dir && pw->pw_dir[0] == '/')
		id->home = xstrdup(pw->pw_dir);
	if (id->shell == NULL && pw->pw_shell && pw->pw_shell[0] == '/')
		id->shell = xstrdup(pw->pw_shell);
}

static int
find_peer_users(struct identity *id, char *why)
{
	id->peer_uids =
	    xcalloc(id->peer_users.count + 1, sizeof(*id->peer_uids));
	for (size_t i = 0; i < id->peer_users.count; i++) {
		const char *name = id->peer_users.items[i];
		const struct passwd *pw = getpwnam(name);

		if (pw == NULL)
			return conf_refuse(
			    why, "peer-user: %.100s: no such user", name);
		id->peer_uids[i] = pw->pw_uid;
	}
	return 0;
}

/* Finds the user that execd runs as, who may have no name. */
static int
find_self(struct identity *id, char *why)
{
	const struct passwd *pw = getpwuid(getuid());
	const char *home = getenv("HOME");

	if (id->group != NULL || id->groups.count > 0)
		return conf_refuse(why, "other groups need root");
	if (id->home == NULL && home != NULL && home[0] == '/')
		id->home = xstrdup(home);
	if (pw != NULL) {
		take_passwd(id, pw);
		return 0;
	}
	id->user_name = xasprintf("%u", getuid());
	id->uid = getuid();
	id->gid = getgid();
	return 0;
}

/* The users of the configuration in force, or of what it was before. */
static struct strings past_users;

/* Tells whether the user was there when the configuration was read, and was
 * removed since. Then a reload and another broker go on serving the others. A
 * user who was never there is a mistake of the operator. */
static bool
is_gone(const struct identity *id, int err)
{
	return (err == 0 || err == ENOENT || err == ESRCH) &&
	       (spawn_is_past() ||
		   (spawn_has_served() &&
		       (!spawn_is_reload() ||
			   strings_has(&past_users, id->user))));
}

static int
leave_out(struct identity *id)
{
	log_warn(0,
	    "identity %s: user %s does not exist any more, and gets no "
	    "session",
	    id->name, id->user);
	identity_is_nobodys(id, id->user);
	return 0;
}

static int
find_user(struct identity *id, char *why)
{
	const struct passwd *pw;

	if (spawn_is_past())
		strings_add(&past_users, id->user);
	errno = 0;
	pw = getpwnam(id->user);
	if (pw == NULL && is_gone(id, errno))
		return leave_out(id);
	if (pw == NULL)
		return conf_refuse(why, "user: %.100s: %s", id->user,
		    errno ? strerror(errno) : "no such user");
	if (pw->pw_uid == 0)
		return conf_refuse(why,
		    "user: %.100s: this is root; name an ordinary user",
		    id->user);
	take_passwd(id, pw);
	return take_groups(id, why);
}

int
identity_resolve(struct identity *id, char *why)
{
	bool root = spawn_is_root();
	const struct passwd *pw = NULL;
	int err;

	if (root && id->user == NULL)
		return conf_refuse(why, "no session may run as root: name "
					"an ordinary user");
	if (!root && id->user != NULL)
		pw = getpwnam(id->user);
	if (!root && id->user != NULL && (pw == NULL || pw->pw_uid != getuid()))
		return conf_refuse(
		    why, "user: %.100s: another user needs root", id->user);
	err = root ? find_user(id, why) : find_self(id, why);
	if (err == 0)
		err = find_peer_users(id, why);
	if (err < 0)
		return err;
	if (id->home == NULL)
		id->home = xstrdup("/");
	if (id->shell == NULL)
		id->shell = xstrdup("/bin/sh");
	if (id->limits.max_detached_ttl_ms == KEEP_UNSET)
		id->limits.max_detached_ttl_ms =
		    id->user != NULL ? KEEP_OF_USER_MS : KEEP_OF_SHARED_MS;
	make_environment(id, root);
	return 0;
}
