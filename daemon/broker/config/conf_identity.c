/* SPDX-License-Identifier: ISC */
/*
 * [identity NAME] of execd.conf(5), and what its clients may ask of a sandbox:
 * [sandbox] gives the defaults, and the identity's keys replace them. Each
 * limit remembers the key that set it, so that a refusal can name it.
 */
#include <grp.h>
#include <netinet/in.h>
#include <pwd.h>

#include "base.h"
#include "conf.h"
#include "spawn_client.h"

/*
 * What clients of an identity may ask of a sandbox. The defaults are replaced
 * by [sandbox], and these by the identity's keys. Each limit remembers the key
 * that set it, so that a refusal can name it.
 */

/* A limit that the operator may set in [sandbox] or for one identity. */
enum limit {
	LIMIT_UNSANDBOXED,
	LIMIT_EXTERNAL,
	LIMIT_NETWORK,
	LIMIT_PROFILE,
	LIMIT_WRITABLE,
	LIMIT_WORKSPACE,
	LIMIT_DENY_READ,
	LIMIT_NETWORK_ALLOW,
	LIMIT_NETWORK_DENY,
	LIMIT_NETWORK_HOST,
	LIMITS
};

/* The keys as [sandbox] has them, and what is before them in an identity. */
static const struct keyword {
	const char *before, *name;
} keywords[LIMITS] = {
	[LIMIT_UNSANDBOXED] = { "sandbox-", "allow-unsandboxed" },
	[LIMIT_EXTERNAL] = { "sandbox-", "allow-external" },
	[LIMIT_NETWORK] = { "sandbox-", "allow-network" },
	[LIMIT_PROFILE] = { "sandbox-", "max-profile" },
	[LIMIT_WRITABLE] = { "sandbox-", "writable-roots" },
	[LIMIT_WORKSPACE] = { "sandbox-", "workspace-roots" },
	[LIMIT_DENY_READ] = { "sandbox-", "deny-read" },
	[LIMIT_NETWORK_ALLOW] = { "", "network-allow" },
	[LIMIT_NETWORK_DENY] = { "", "network-deny" },
	[LIMIT_NETWORK_HOST] = { "", "network-host" },
};

static bool
sets(const struct sandbox_rules *r, enum limit limit)
{
	switch (limit) {
	case LIMIT_UNSANDBOXED:
		return r->unsandboxed != SANDBOX_UNSET;
	case LIMIT_EXTERNAL:
		return r->external != SANDBOX_UNSET;
	case LIMIT_NETWORK:
		return r->network != SANDBOX_UNSET;
	case LIMIT_PROFILE:
		return r->max_profile != SANDBOX_UNSET;
	case LIMIT_WRITABLE:
		return r->writable_roots.count > 0;
	case LIMIT_WORKSPACE:
		return r->workspace_roots.count > 0;
	case LIMIT_NETWORK_ALLOW:
		return sandbox_rules_list_any(&r->network_allow);
	case LIMIT_NETWORK_DENY:
		return sandbox_rules_list_any(&r->network_deny);
	case LIMIT_NETWORK_HOST:
		return r->network_host == 0;
	default:
		return sandbox_rules_list_any(&r->deny_read);
	}
}

/* Returns the key by which these rules lower what clients may ask, or
 * LIMITS. */
static enum limit
find_lowered(const struct sandbox_rules *r)
{
	static const enum limit lists[] = { LIMIT_WORKSPACE, LIMIT_WRITABLE,
		LIMIT_DENY_READ, LIMIT_NETWORK_ALLOW, LIMIT_NETWORK_DENY,
		LIMIT_NETWORK_HOST };

	if (r->max_profile < SANDBOX_PROFILE_FULL)
		return LIMIT_PROFILE;
	if (r->network == 0)
		return LIMIT_NETWORK;
	for (size_t i = 0; i < nitems(lists); i++)
		if (sets(r, lists[i]))
			return lists[i];
	return LIMITS;
}

/* The rules of an identity come before those of [sandbox]. */
struct levels {
	const struct sandbox_rules *rules[2];
	const char *identity;
};

/* "KEY in SECTION". */
static void
put_origin(const struct levels *l, size_t level, enum limit limit,
    char origin[SANDBOX_ORIGIN_MAX])
{
	const struct keyword *k = &keywords[limit];

	if (level == 0)
		snprintf(origin, SANDBOX_ORIGIN_MAX,
		    "%s%s in [identity %.100s]", k->before, k->name,
		    l->identity);
	else
		snprintf(
		    origin, SANDBOX_ORIGIN_MAX, "%s in [sandbox]", k->name);
}

/* Finds the rules that set the limit. Returns false if none did. */
static bool
find_origin(
    const struct levels *l, enum limit limit, char origin[SANDBOX_ORIGIN_MAX])
{
	for (size_t i = 0; i < nitems(l->rules); i++)
		if (sets(l->rules[i], limit)) {
			put_origin(l, i, limit, origin);
			return true;
		}
	return false;
}

/* An operator who lowers a limit does not want a request without a policy to
 * get around it, unless he permits that in the same section. */
static void
derive(const struct levels *l, enum limit limit, bool *allowed,
    char origin[SANDBOX_ORIGIN_MAX])
{
	for (size_t i = 0; i < nitems(l->rules); i++) {
		enum limit lowered = find_lowered(l->rules[i]);

		if (sets(l->rules[i], limit)) {
			put_origin(l, i, limit, origin);
			return;
		}
		if (lowered < LIMITS) {
			*allowed = false;
			put_origin(l, i, lowered, origin);
			return;
		}
	}
}

static void
find_origins(
    const struct conf *c, const struct identity *id, struct sandbox_limits *l)
{
	struct sandbox_origins *o = &l->origins;
	const struct levels levels = {
		.rules = { &id->sandbox, &c->sandbox },
		.identity = id->of != NULL     ? id->of
			    : id->name != NULL ? id->name
					       : "",
	};

	snprintf(o->identity, sizeof(o->identity), "%.60s", levels.identity);
	derive(&levels, LIMIT_UNSANDBOXED, &l->unsandboxed, o->unsandboxed);
	derive(&levels, LIMIT_EXTERNAL, &l->external, o->external);
	find_origin(&levels, LIMIT_NETWORK, o->network);
	find_origin(&levels, LIMIT_WORKSPACE, o->roots);
	if (!find_origin(&levels, LIMIT_WRITABLE, o->write) ||
	    l->max_profile < SANDBOX_PROFILE_MANAGED)
		find_origin(&levels, LIMIT_PROFILE, o->write);
}

/*
 * Without a word of the operator a network is the host's, as it is with the
 * reference. Who lists hosts wants no command to go around the list, and what
 * an identity says comes before [sandbox].
 */
static bool
is_host_network(const struct conf *c, const struct identity *id)
{
	const struct sandbox_rules *const rules[] = { &id->sandbox,
		&c->sandbox };

	for (size_t i = 0; i < nitems(rules); i++) {
		if (rules[i]->network_host != SANDBOX_UNSET)
			return rules[i]->network_host == 1;
		if (sandbox_rules_list_hosts(rules[i]))
			return false;
	}
	return true;
}

/* Returns the TCP port of a listener, or 0. */
static uint16_t
port_of(const struct listener *l)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = { .any.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(a);

	if (l->kind != LISTENER_WS || l->fd < 0 ||
	    getsockname(l->fd, &a.any, &len) < 0)
		return 0;
	return a.any.sa_family == AF_INET    ? ntohs(a.v4.sin_port)
	       : a.any.sa_family == AF_INET6 ? ntohs(a.v6.sin6_port)
					     : 0;
}

/* Fills in the TCP ports of the listeners. Who shows a credential at a port may
 * have it of the command's user, so all of them count. Returns their number. */
static size_t
own_ports(const struct conf *c, uint16_t ports[SANDBOX_OWN_PORTS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < c->nlisteners; i++) {
		uint16_t port = port_of(c->listeners[i]);

		if (port != 0)
			ports[n++] = port;
	}
	return n;
}

/* A configuration that is a file can have such a port after a reload. */
static void
find_own_ports(const struct conf *c, struct sandbox_limits *l)
{
	l->guards_ports = own_ports(c, l->own_ports) > 0 || c->path != NULL;
	for (size_t i = 0; i < c->nlisteners; i++)
		l->open_port |= (c->listeners[i]->allow_unauthenticated ||
				    c->listeners[i]->keys.peer_user) &&
				port_of(c->listeners[i]) != 0;
}

_Static_assert(SANDBOX_OWN_PORTS_MAX >= CONTROL_LISTENERS_MAX,
    "every listener's port fits into the limits");

static void
apply_group_limits(
    const struct conf *c, const struct identity *id, struct sandbox_limits *l)
{
	const struct group_limits *command = &id->limits.command;
	const struct group_limits *together = &id->limits.together;

	l->pids = command->tasks;
	l->memory_bytes = command->memory_bytes;
	l->cpu_percent = command->cpu_percent;
	l->cpu_weight = command->cpu_weight;
	l->io_weight = command->io_weight;
	l->own = (uint8_t)id->limits.command_own;
	l->of_identity =
	    (struct sandbox_group){ together->tasks, together->memory_bytes };
	l->of_all = (struct sandbox_group){ c->limits.all.tasks,
		c->limits.all.memory_bytes };
}

void
conf_sandbox_limits(
    const struct conf *c, const struct identity *id, struct sandbox_limits *l)
{
	/* The file that root reads is for machines that have the secrets of
	 * many users. */
	sandbox_limits_default(l, c->path != NULL && spawn_is_root());
	if (c->sandbox.deny_read.count > 0)
		l->deny_read[0] = '\0';
	sandbox_rules_apply(&c->sandbox, l);
	sandbox_rules_apply(&id->sandbox, l);
	apply_group_limits(c, id, l);
	l->network_host = is_host_network(c, id);
	find_own_ports(c, l);
	find_origins(c, id, l);
}

void
conf_fill_sandbox(struct conf *c)
{
	struct identity nobody = { .name = NULL };
	struct sandbox_limits l;

	sandbox_rules_init(&nobody.sandbox);
	conf_sandbox_limits(c, &nobody, &l);
	sandbox_rules_fill(&c->sandbox, &l);
}

static void
tell_network(const struct identity *id, const struct sandbox_limits *l)
{
	if (l->network && !l->network_host)
		log_info("[identity %s]: a policy with a network reaches "
			 "public addresses through execd-netproxy%s",
		    id->name,
		    l->network_allow[0] != '\0' ? ", those of network-allow"
						: "");
}

static void
tell_path_map(const struct identity *id)
{
	for (size_t i = 0; i < id->path_map.count; i++)
		log_info("[identity %s]: path-map: its clients' %s is %s",
		    id->name, id->path_map.roots[i].client,
		    id->path_map.roots[i].server);
}

void
conf_tell_ceilings(const struct conf *c)
{
	for (size_t i = 0; i < c->nidentities; i++) {
		const struct identity *id = c->identities[i];
		struct sandbox_limits l;

		if (id->of != NULL)
			continue;
		conf_sandbox_limits(c, id, &l);
		if (l.unsandboxed)
			log_info("[identity %s]: commands run as %s; clients "
				 "may ask for a sandbox, and need none",
			    id->name, id->user_name);
		else
			log_info("[identity %s]: commands run as %s, in a "
				 "sandbox of at most %s (%s)",
			    id->name, id->user_name,
			    sandbox_profile_name(l.max_profile),
			    l.origins.unsandboxed);
		tell_network(id, &l);
		tell_path_map(id);
	}
}

/*
 * [identity NAME] of execd.conf(5).
 */

/* The most that is read of a command's output at once. */
#define OUTPUT_RATE_MIN (64u << 10)

/* Enough for the first line of a recording, which has the command. */
#define RECORD_MIN_BYTES (64u << 10)

#define KEY(keyword, type, member)                                             \
	{                                                                      \
		keyword, &type, offsetof(struct identity, member)              \
	}

#define SANDBOX_KEY(keyword, type, rule, limit, unset)                         \
	KEY("sandbox-" keyword, type, sandbox.rule),
#define SANDBOX_LIST(keyword, type, member, added)                             \
	KEY("sandbox-" keyword, type, sandbox.member),

#define NETWORK_KEY(keyword, type, rule, limit, unset)                         \
	KEY(keyword, type, sandbox.rule),
#define NETWORK_LIST(keyword, type, member, added)                             \
	KEY(keyword, type, sandbox.member),

#define TOGETHER_KEY(keyword, type, member)                                    \
	KEY(keyword, type, limits.together.member),
#define COMMAND_KEY(keyword, type, member)                                     \
	KEY("command-" keyword, type, limits.command.member),

/* clang-format off */
static const struct conf_key identity_keys[] = {
	KEY("user", conf_string, user),
	KEY("group", conf_string, group),
	KEY("groups", conf_words, groups),
	KEY("home", conf_path, home),
	KEY("shell", conf_path, shell),
	KEY("umask", conf_mode, umask),
	KEY("environment", conf_lines, environment),
	KEY("path-map", conf_path_map, path_map),
	KEY("token-sha256", conf_digests, tokens),
	KEY("token-subject", conf_words, subjects),
	KEY("certificate-sha256", conf_digests, certificates),
	KEY("certificate-subject", conf_lines, certificate_subjects),
	KEY("peer-user", conf_words, peer_users),
	KEY("peer-group", conf_string, peer_group),
	KEY("max-sessions", conf_optional_count, limits.max_sessions),
	KEY("session-deadline", conf_optional_duration,
	    limits.session_deadline_ms),
	{ "max-detached-ttl", &conf_optional_duration,
	    offsetof(struct identity, limits.max_detached_ttl_ms),
	    .max = CONTROL_KEEP_MAX_MS },
	KEY("command-deadline", conf_optional_duration,
	    limits.command_deadline_ms),
	KEY("output-rate", conf_optional_bytes, limits.output_rate),
	KEY("record-tty", conf_path, record.directory),
	KEY("record-tty-input", conf_bool, record.input),
	KEY("record-tty-max", conf_bytes, record.max_bytes),
	KEY("record-tty-required", conf_bool, record.required),
	KEY("audit-files", audit_files_type, audit_files),
	GROUP_LIMIT_KEYS(TOGETHER_KEY)
	GROUP_LIMIT_KEYS(COMMAND_KEY)
	KEY("max-open-files", conf_optional_count, limits.max_open_files),
	KEY("max-cpu-time", conf_optional_duration, limits.max_cpu_ms),
	KEY("max-address-space", memory_limit, limits.max_address_bytes),
	KEY("max-file-size", conf_optional_bytes, limits.max_file_bytes),
#include "sandbox_keys.def"
};
/* clang-format on */
_Static_assert(
    nitems(identity_keys) <= CONF_KEYS_MAX, "conf_text.c counts them");

struct identity *
conf_find_identity(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->nidentities; i++)
		if (strcmp(c->identities[i]->name, name) == 0)
			return c->identities[i];
	return NULL;
}

static void *
add_identity(struct conf *c, const char *name, char *why)
{
	if (conf_find_identity(c, name) != NULL) {
		snprintf(
		    why, CONF_WHY_MAX, "[identity %s] already exists", name);
		return NULL;
	}
	if (c->nidentities == c->identities_cap) {
		c->identities_cap = c->identities_cap * 2 + 8;
		c->identities = xreallocarray(
		    c->identities, c->identities_cap, sizeof(*c->identities));
	}
	return c->identities[c->nidentities++] = identity_new(name);
}

static void *
get_identity(const struct conf *c, size_t i)
{
	return i < c->nidentities - c->nmembers ? c->identities[i] : NULL;
}

static int
check_environment(const struct strings *env, char *why)
{
	for (size_t i = 0; i < env->count; i++) {
		const char *equals = strchr(env->items[i], '=');

		if (equals != NULL && equals != env->items[i])
			continue;
		return conf_refuse(why,
		    "environment: `%.100s` is not NAME=VALUE", env->items[i]);
	}
	return 0;
}

/* Checks the directory for recordings. Returns 0, or -EINVAL with
 * why[CONF_WHY_MAX]. */
static int
check_recordings(struct record_rules *rules, char *why)
{
	struct control_place place = { .kind = PLACE_RECORDINGS };
	struct control_found found;
	int fd, err;

	snprintf(place.path, sizeof(place.path), "%s", rules->directory);
	err = spawn_place(&place, &fd, &found);
	rules->number = place.number;
	return err < 0 ? conf_refuse(why, "record-tty: %.200s: %s",
			     rules->directory, found.why)
		       : 0;
}

/* The section itself is nobody's: its members are identities. */
static int
check_peer_group(struct identity *id, char *why)
{
	const struct group *gr = getgrnam(id->peer_group);

	if (id->user == NULL || strcmp(id->user, "peer") != 0)
		return conf_refuse(why,
		    "peer-group: needs `user = peer`: each member is himself");
	if (id->tokens.count + id->subjects.count + id->certificates.count +
		id->certificate_subjects.count + id->peer_users.count >
	    0)
		return conf_refuse(why,
		    "peer-group: a member has no other credential; make an "
		    "identity of his for it");
	if (!spawn_is_root())
		return conf_refuse(why, "peer-group: other users need root");
	if (gr == NULL)
		return conf_refuse(
		    why, "peer-group: %.100s: no such group", id->peer_group);
	id->peer_gid = gr->gr_gid;
	identity_is_nobodys(id, "each member");
	return 0;
}

static int
check_identity(struct conf *c, void *o, char *why)
{
	struct identity *id = o;

	if (check_environment(&id->environment, why) < 0)
		return -EINVAL;
	if (sandbox_rules_check(&id->sandbox, why) < 0)
		return -EINVAL;
	if (id->record.directory != NULL &&
	    check_recordings(&id->record, why) < 0)
		return -EINVAL;
	if (id->record.max_bytes < RECORD_MIN_BYTES)
		return conf_refuse(why, "record-tty-max: must be at least %uK",
		    RECORD_MIN_BYTES >> 10);
	if (id->limits.max_cpu_ms % 1000 != 0)
		return conf_refuse(
		    why, "max-cpu-time: only whole seconds can be enforced");
	if (id->limits.output_rate > 0 &&
	    id->limits.output_rate < OUTPUT_RATE_MIN)
		return conf_refuse(why, "output-rate: must be at least %uK",
		    OUTPUT_RATE_MIN >> 10);
	if (id->peer_group != NULL)
		return check_peer_group(id, why);
	return identity_resolve(id, why) < 0 ? -EINVAL : 0;
}

/* --- members of a group ------------------------------------------------- */

/* Each value goes as its text, which may have several lines. One that nobody
 * set may have a text that says something else. */
static int
copy_key(const struct conf_key *key, const struct identity *from,
    struct identity *to, char *why)
{
	struct buf text, before;
	char *rest, *line;
	bool same;
	int err = 0;

	conf_show_key(&text, key, from);
	conf_show_key(&before, key, to);
	same = strcmp((char *)text.data, (char *)before.data) == 0;
	buf_clear(&before);
	rest = (char *)text.data;
	while (!same && err == 0 && (line = strsep(&rest, "\n")) != NULL &&
	       *line != '\0')
		err = conf_set_key(key, to, line, why);
	buf_clear(&text);
	return err;
}

static int
make_member(
    const struct identity *of, const char *user, struct identity *id, char *why)
{
	static const char *const own[] = { "user", "peer-group" };
	int err = 0;

	id->of = xstrdup(of->name);
	for (size_t i = 0; i < nitems(identity_keys) && err == 0; i++) {
		const struct conf_key *key = &identity_keys[i];
		bool copied = true;

		for (size_t j = 0; j < nitems(own); j++)
			copied &= strcmp(key->keyword, own[j]) != 0;
		if (copied)
			err = copy_key(key, of, id, why);
	}
	id->user = xstrdup(user);
	strings_add(&id->peer_users, user);
	id->record.number = of->record.number;
	return err < 0 ? err : identity_resolve(id, why);
}

/* Root is never one, and who is no user any more is none. */
static bool
may_be_member(const struct identity *of, const char *user)
{
	const struct passwd *pw = getpwnam(user);

	if (pw != NULL && pw->pw_uid != 0)
		return true;
	log_warn(0, "[identity %s] peer-group: %s is left out: %s", of->name,
	    user, pw == NULL ? "there is no such user" : "this is root");
	return false;
}

static int
add_member(
    struct conf *c, const struct identity *of, const char *user, char *why)
{
	_cleanup_free_ char *name = xasprintf("%s.%s", of->name, user);
	char reason[CONF_WHY_MAX];
	struct identity *id;

	if (!may_be_member(of, user))
		return 0;
	if (strlen(name) >= CONTROL_IDENTITY_MAX)
		return conf_refuse(why,
		    "[identity %s] peer-group: %.100s: longer than %d "
		    "characters",
		    of->name, name, CONTROL_IDENTITY_MAX - 1);
	id = add_identity(c, name, why);
	if (id == NULL)
		return -EINVAL;
	c->nmembers++;
	return make_member(of, user, id, reason) < 0
		   ? conf_refuse(why,
			 "[identity %s] peer-group: %.100s: %.200s", of->name,
			 user, reason)
		   : 0;
}

/* What the C library says of the group is its own until the next question. */
static int
add_members_of(struct conf *c, const struct identity *of, char *why)
{
	const struct group *gr = getgrnam(of->peer_group);
	struct strings users = { 0 };
	int err = 0;

	for (size_t i = 0; gr != NULL && gr->gr_mem[i] != NULL; i++)
		strings_add(&users, gr->gr_mem[i]);
	for (size_t i = 0; i < users.count && err == 0; i++)
		err = add_member(c, of, users.items[i], why);
	log_info("[identity %s]: each of the %zu members of %s runs commands "
		 "as himself",
	    of->name, users.count, of->peer_group);
	strings_clear(&users);
	return err;
}

int
conf_add_members(struct conf *c, char *why)
{
	size_t written = c->nidentities;
	int err = 0;

	for (size_t i = 0; i < written && err == 0; i++)
		if (c->identities[i]->peer_group != NULL)
			err = add_members_of(c, c->identities[i], why);
	return err;
}

const struct conf_section conf_identity = {
	.name = "identity",
	.keys = identity_keys,
	.nkeys = nitems(identity_keys),
	.add = add_identity,
	.object = get_identity,
	.check = check_identity,
};
