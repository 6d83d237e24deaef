/* SPDX-License-Identifier: ISC */
/*
 * execd-broker --account NAME UID:GID, which root starts when a session begins.
 * It asks the name services about one user, says what they know, and ends. It
 * stays root, because nobody else reads the date on which an account expires
 * (shadow(5)). It hears nobody, so only a name service can keep it.
 */
#include "base.h"
#include "broker_main.h"

#include <pwd.h>
#include <shadow.h>

#include "drop.h"
#include "seqpacket.h"
#include "signals.h"
#include "spawn_client.h"

#define DAY_S (24 * 60 * 60)

/* Not every name service has such errors (getpwnam(3)). */
static bool
is_unknown(int err)
{
	return err == 0 || err == ENOENT || err == ESRCH;
}

/* As pam_unix(8) does. A user without such an entry never expires. The shell
 * and /etc/nologin do not count: users of services have no shell to log in. */
static enum account_state
find_expiry(const char *name)
{
	const struct spwd *sp;

	errno = 0;
	sp = getspnam(name);
	if (sp == NULL)
		return is_unknown(errno) ? ACCOUNT_THERE : ACCOUNT_ERROR;
	return sp->sp_expire >= 0 && time(NULL) / DAY_S >= sp->sp_expire
		   ? ACCOUNT_EXPIRED
		   : ACCOUNT_THERE;
}

static void
find(const char *name, struct spawn_account *a)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(name);
	if (pw != NULL) {
		a->uid = pw->pw_uid;
		a->gid = pw->pw_gid;
		a->state = find_expiry(name);
	} else {
		a->state = is_unknown(errno) ? ACCOUNT_GONE : ACCOUNT_ERROR;
	}
	a->error = a->state == ACCOUNT_ERROR ? (uint32_t)errno : 0;
}

/* The groups that a user with this name and group has. */
static int
list_groups(char *name, gid_t gid)
{
	char *none = NULL;
	struct identity id = { .user_name = name, .gid = gid, .env = &none };
	int err = identity_load_groups(&id);

	return err < 0 ? err : spawn_user_list(&id);
}

int
account_main(char *name, const char *user)
{
	struct spawn_account a = { .head = { SPAWN_ACCOUNT, SPAWN_VERSION } };
	uid_t uid;
	gid_t gid;
	int groups, err;

	prctl(PR_SET_NAME, "execd-account");
	signals_ignore_unused(true);
	drop_parse(user, &uid, &gid);
	find(name, &a);
	err = seqpacket_send(CONTROL_FD, &a, sizeof(a), NULL, 0);
	if (err < 0 || a.state != ACCOUNT_THERE)
		return err < 0;
	groups = list_groups(name, gid);
	if (groups < 0) {
		a.state = ACCOUNT_ERROR;
		a.error = (uint32_t)-groups;
	}
	return seqpacket_send(CONTROL_FD, &a, sizeof(a), &groups, groups >= 0) <
	       0;
}
