/* SPDX-License-Identifier: ISC */
/*
 * What clients of an identity may ask of a sandbox. The defaults are replaced
 * by [sandbox], and these by the identity's keys. Each limit remembers the key
 * that set it, so that a refusal can name it.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "log.h"
#include "spawn_client.h"

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
		.identity = id->name != NULL ? id->name : "",
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
	l->network_host = is_host_network(c, id);
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

static const char *const profiles[] = {
	[SANDBOX_PROFILE_READ_ONLY] = "read-only",
	[SANDBOX_PROFILE_WORKSPACE_WRITE] = "workspace-write",
	[SANDBOX_PROFILE_MANAGED] = "managed",
	[SANDBOX_PROFILE_FULL] = "full",
};

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

		conf_sandbox_limits(c, id, &l);
		if (l.unsandboxed)
			log_info("[identity %s]: commands run as %s; clients "
				 "may ask for a sandbox, and need none",
			    id->name, id->user_name);
		else
			log_info("[identity %s]: commands run as %s, in a "
				 "sandbox of at most %s (%s)",
			    id->name, id->user_name, profiles[l.max_profile],
			    l.origins.unsandboxed);
		tell_network(id, &l);
		tell_path_map(id);
	}
}
