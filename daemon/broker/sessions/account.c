/* SPDX-License-Identifier: ISC */
/*
 * The accounts of the identities' users when a session begins: whether the user
 * still exists, has expired, and is in which groups. Neither root nor this
 * broker asks a name service, which may hang: execd-broker --account does, a
 * process of its own that hears nobody.
 */
#include "base.h"
#include "session_registry.h"

#include "broker_state.h"
#include "seqpacket.h"
#include "spawn_client.h"
#include "spawn_user.h"

/* What is known holds for this long, if no file of /etc is replaced: a name
 * service elsewhere is asked no more often. */
#define KNOWN_MS 10000

/* The name service's time to answer. */
#define ANSWER_MS 5000

/* A number that changes when a file of local accounts does: who changes one
 * replaces it. */
static uint64_t
local_accounts(void)
{
	struct stat st;

	if (stat("/etc", &st) < 0)
		return 0;
	return (st.st_ino * 1000003 + (uint64_t)st.st_ctim.tv_sec) * 1000003 +
	       (uint64_t)st.st_ctim.tv_nsec;
}

static void
settle(struct identity *id, const char *why)
{
	struct account *a = &id->account;

	a->asking = false;
	watch_end(&a->timer);
	watch_close(&a->channel);
	spawn_kill(a->program);
	snprintf(a->why, sizeof(a->why), "%s", why);
	if (why[0] != '\0')
		session_spare_drop(&broker, id);
	broker.on->account_known(&broker, id);
}

/* Reads a list of groups. Returns 0, or -EBADMSG, and then there is nothing to
 * clear. */
static int
read_groups(struct spawn_user *o, int list)
{
	int seals = fcntl(list, F_GET_SEALS);
	struct stat st;

	/* A file that can change could say something else afterwards. Only a
	 * file in memory has seals, and reading it does not wait. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(list, &st) < 0 ||
	    st.st_size <= 0 || st.st_size > SPAWN_USER_LIST_MAX)
		return -EBADMSG;
	*o = (struct spawn_user){ .size = (size_t)st.st_size };
	o->list = xmalloc(o->size);
	if (pread(list, o->list, o->size, 0) == (ssize_t)o->size &&
	    spawn_user_is_list(o->list, o->size))
		return 0;
	spawn_user_clear(o);
	return -EBADMSG;
}

static int
compare(const void *a, const void *b)
{
	gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;

	return x < y ? -1 : x > y;
}

/* Keeps those of the identity's groups that the user still has. */
static int
take_groups(struct identity *id, int fd)
{
	struct spawn_user now;
	size_t n = 0;
	int err = read_groups(&now, fd);

	if (err < 0)
		return err;
	qsort(now.list + 1, now.list[0], sizeof(gid_t), compare);
	for (size_t i = 0; i < id->ngids; i++)
		if (bsearch(&id->gids[i], now.list + 1, now.list[0],
			sizeof(gid_t), compare) != NULL)
			id->gids[n++] = id->gids[i];
	spawn_user_clear(&now);
	if (n == id->ngids)
		return 0;
	log_info("identity %s: its user is in %zu groups fewer", id->name,
	    id->ngids - n);
	id->ngids = n;
	spawn_narrow(id);
	session_spare_drop(&broker, id);
	return 0;
}

/* Returns why the user gets no session, or "". */
static const char *
judge(const struct identity *id, const struct spawn_account *a)
{
	if (a->state == ACCOUNT_GONE)
		return "does not exist any more";
	if (a->state == ACCOUNT_EXPIRED)
		return "has expired";
	if (a->state != ACCOUNT_THERE)
		return strerror((int)a->error);
	if (a->uid != id->uid || (id->group == NULL && a->gid != id->gid))
		return "has another number or group since the configuration "
		       "was read";
	return "";
}

/* The account comes first, and then its groups, which an identity with groups
 * of its own does not wait for. */
static void
answered(evutil_socket_t fd, short what, void *arg)
{
	struct identity *id = arg;
	struct spawn_account answer;
	int fds[SEQPACKET_FDS_MAX], err = 0;
	size_t nfds = 0;
	ssize_t n = seqpacket_recv(fd, &answer, sizeof(answer), fds, &nfds);
	const char *why = "could not be asked about: execd-broker --account "
			  "ended";

	if (n == -EAGAIN)
		return;
	if (n == sizeof(answer) && answer.head.type == SPAWN_ACCOUNT) {
		why = judge(id, &answer);
		err = nfds > 0 ? take_groups(id, fds[0]) : -EAGAIN;
		if (nfds > 0 && err < 0)
			why = strerror(-err);
	}
	while (nfds > 0)
		close(fds[--nfds]);
	if (why[0] != '\0' || err == 0 || id->groups.count > 0)
		settle(id, why);
}

static void
too_late(evutil_socket_t fd, short what, void *arg)
{
	struct identity *id = arg;

	log_error(0,
	    "identity %s: no name service has answered about user %s within "
	    "%d s",
	    id->name, id->user, ANSWER_MS / 1000);
	settle(id, "could not be asked about in time");
}

static void
ask(struct identity *id)
{
	struct account *a = &id->account;
	int own;

	log_debug("identity %s: asking about user %s", id->name, id->user);
	a->stamp = local_accounts();
	a->asked_ms = now_ms();
	a->program = spawn_program(PROGRAM_OF_ACCOUNT, id, &own);
	if (a->program < 0) {
		snprintf(a->why, sizeof(a->why), "could not be asked about: %s",
		    strerror(-a->program));
		return;
	}
	a->asking = true;
	watch_time(&a->timer, ANSWER_MS, too_late, id);
	if (watch_add(&a->channel, own, EV_READ, answered, id) < 0)
		close(own); /* the deadline answers */
}

int
account_check(struct broker *m, struct identity *id, char reason[256])
{
	struct account *a = &id->account;

	if (!m->root)
		return 0;
	if (id->uid == IDENTITY_GONE) {
		snprintf(reason, 256, "user %.64s does not exist", id->user);
		return -EACCES;
	}
	if (!a->asking &&
	    (a->asked_ms == 0 || now_ms() - a->asked_ms >= KNOWN_MS ||
		a->stamp != local_accounts()))
		ask(id);
	if (a->asking)
		return -EINPROGRESS;
	if (a->why[0] == '\0')
		return 0;
	snprintf(reason, 256, "user %.64s %s", id->user, a->why);
	return -EACCES;
}
