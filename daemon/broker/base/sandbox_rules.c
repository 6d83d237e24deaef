/* SPDX-License-Identifier: ISC */
/*
 * The operator's rules about sandboxes: their values, and how several rules are
 * combined.
 */
#include "sandbox_rules.h"

#include "network_rules.h"

#define LANDLOCK_ABI_MAX 64
#define NESTED_DEPTH_MAX 16

/* --- choices: each word has a number ------------------------------------ */

static const char *const modes[] = { "auto", "require", NULL };
static const char *const over_limits[] = { "refuse", "clamp", NULL };
static const char *const profiles[] = {
	[SANDBOX_PROFILE_READ_ONLY] = "read-only",
	[SANDBOX_PROFILE_WORKSPACE_WRITE] = "workspace-write",
	[SANDBOX_PROFILE_MANAGED] = "managed",
	[SANDBOX_PROFILE_FULL] = "full",
	NULL,
};
const char *
sandbox_profile_name(enum sandbox_profile profile)
{
	return profiles[profile];
}

static const char *const unix_sockets[] = {
	[SANDBOX_UNIX_DENY] = "deny",
	[SANDBOX_UNIX_ALLOW] = "allow",
	NULL,
};

static const char *const nested_gits[] = {
	[SANDBOX_NESTED_OFF] = "off",
	[SANDBOX_NESTED_HOOKS] = "hooks",
	NULL,
};
static const char *const tmps[] = {
	[SANDBOX_TMP_HOST] = "host",
	[SANDBOX_TMP_PRIVATE] = "private",
	NULL,
};
static const char *const tmpdirs[] = {
	[SANDBOX_TMP_HOST] = "host",
	[SANDBOX_TMP_PRIVATE] = "private",
	[SANDBOX_TMP_REQUEST] = "request",
	NULL,
};
static const char *const environments[] = {
	[SANDBOX_ENVIRONMENT_NONE] = "none",
	[SANDBOX_ENVIRONMENT_CORE] = "core",
	[SANDBOX_ENVIRONMENT_ALL] = "all",
	NULL,
};

#define CHOICE(list) CONF_CHOICE(uint8_t), .words = (list), .may_be_unset = true

const struct conf_type sandbox_mode = { CHOICE(modes) };
const struct conf_type sandbox_profile = { CHOICE(profiles) };
const struct conf_type sandbox_over_limit = { CHOICE(over_limits) };
const struct conf_type sandbox_environment = { CHOICE(environments) };
const struct conf_type sandbox_tmp = { CHOICE(tmps) };
const struct conf_type sandbox_tmpdir = { CHOICE(tmpdirs) };
const struct conf_type sandbox_unix_sockets = { CHOICE(unix_sockets) };
const struct conf_type sandbox_nested_git = { CHOICE(nested_gits) };

const struct conf_type sandbox_small = { CONF_NUMBER(4),
	.max = LANDLOCK_ABI_MAX, .may_be_unset = true };
const struct conf_type sandbox_connections = { CONF_NUMBER(4), .min = 1,
	.max = SANDBOX_NETWORK_CONNECTIONS_MAX, .may_be_unset = true };

/* --- patterns of hosts -------------------------------------------------- */

_Static_assert(CONF_WHY_MAX >= NETWORK_RULE_ERROR_MAX, "an error fits");

static int
check_pattern(const char *text, enum network_effect effect, char *why)
{
	struct network_rules rules = { 0 };
	int err = network_rules_add(&rules, effect, slice_of(text), why);

	network_rules_clear(&rules);
	return err < 0 ? -EINVAL : 0;
}

/* "none" is an empty list, and says so alone. */
static int
parse_hosts(const struct conf_type *t, void *at, const char *text, char *why)
{
	enum network_effect effect =
	    t == &sandbox_denied_hosts ? NETWORK_DENY : NETWORK_ALLOW;
	struct strings *s = at;
	size_t i = s->count;
	int err = conf_words.parse(&conf_words, s, text, why);

	for (; err == 0 && i < s->count; i++)
		if (strcmp(s->items[i], "none") != 0)
			err = check_pattern(s->items[i], effect, why);
	if (err == 0 && s->count > 1 && strings_has(s, "none"))
		err = conf_refuse(why, "`none` stands alone");
	return err;
}

#define HOSTS parse_hosts, conf_show_strings, conf_clear_strings, .list = true

const struct conf_type sandbox_allowed_hosts = { HOSTS };
const struct conf_type sandbox_denied_hosts = { HOSTS };

/* --- rules -------------------------------------------------------------- */

void
sandbox_rules_init(struct sandbox_rules *r)
{
	*r = (struct sandbox_rules){ 0 };
#define SANDBOX_KEY(keyword, type, rule, limit, unset) r->rule = unset;
#define SANDBOX_LIST(keyword, type, member, added)
#include "sandbox_keys.def"
}

void
sandbox_rules_clear(struct sandbox_rules *r)
{
#define SANDBOX_KEY(keyword, type, rule, limit, unset)
#define SANDBOX_LIST(keyword, type, member, added) strings_clear(&r->member);
#include "sandbox_keys.def"
}

/* "none" alone is an empty list, which replaces the default. */
static bool
is_none(const struct strings *list)
{
	return list->count == 1 && strcmp(list->items[0], "none") == 0;
}

/* Paths are absolute or below the identity's home. In a list where they need
 * not exist, they may have a "-" before them. */
static int
check_paths(const char *key, const struct strings *list, bool dashes, char *why)
{
	size_t bytes = 1;

	for (size_t i = 0; i < list->count && !is_none(list); i++) {
		const char *path = list->items[i];

		bytes += strlen(path) + 1;
		path += dashes && *path == '-';
		if (path[0] != '/' && strcmp(path, "~") != 0 &&
		    strncmp(path, "~/", 2) != 0)
			return conf_refuse(why,
			    "%s: `%.100s` is neither absolute nor below ~", key,
			    path);
	}
	/* An identity may add as much again. */
	if (bytes > SANDBOX_LIMITS_LIST_MAX / 2)
		return conf_refuse(why, "%s: %zu bytes, at most %d", key, bytes,
		    SANDBOX_LIMITS_LIST_MAX / 2);
	return 0;
}

static int
check_names(const struct strings *names, char *why)
{
	size_t bytes = 1;

	for (size_t i = 0; i < names->count; i++) {
		bytes += strlen(names->items[i]) + 1;
		if (strchr(names->items[i], '/') != NULL)
			return conf_refuse(why,
			    "protected-names: `%.100s` is a path, not a name",
			    names->items[i]);
	}
	if (bytes > SANDBOX_LIMITS_LIST_MAX)
		return conf_refuse(why,
		    "protected-names: %zu bytes, at most %d", bytes,
		    SANDBOX_LIMITS_LIST_MAX);
	return 0;
}

/* An identity may add to what is denied as much again. */
static int
check_hosts(const char *key, const struct strings *list, char *why)
{
	size_t bytes = 1;

	for (size_t i = 0; i < list->count; i++)
		bytes += strlen(list->items[i]) + 1;
	if (bytes > SANDBOX_LIMITS_HOSTS_MAX / 2)
		return conf_refuse(why, "%s: %zu bytes, at most %d", key, bytes,
		    SANDBOX_LIMITS_HOSTS_MAX / 2);
	return 0;
}

bool
sandbox_rules_list_any(const struct strings *list)
{
	return list->count > 0 && !is_none(list);
}

bool
sandbox_rules_list_hosts(const struct sandbox_rules *r)
{
	return sandbox_rules_list_any(&r->network_allow) ||
	       sandbox_rules_list_any(&r->network_deny);
}

/* Lists that every command could go around would promise what is not so. */
static int
check_network(const struct sandbox_rules *r, char *why)
{
	int err = check_hosts("network-allow", &r->network_allow, why);

	if (err == 0)
		err = check_hosts("network-deny", &r->network_deny, why);
	if (err == 0 && r->network_host == 1 && sandbox_rules_list_hosts(r))
		err = conf_refuse(why,
		    "network-host = yes: a policy with a network would not be "
		    "held to network-allow and network-deny; remove the one or "
		    "the other");
	return err;
}

int
sandbox_rules_check(const struct sandbox_rules *r, char *why)
{
	int err =
	    check_paths("workspace-roots", &r->workspace_roots, false, why);

	if (err == 0)
		err = check_paths(
		    "writable-roots", &r->writable_roots, false, why);
	if (err == 0)
		err = check_paths("deny-read", &r->deny_read, true, why);
	if (err == 0)
		err = check_paths("hide", &r->hide, true, why);
	if (err == 0)
		err = check_names(&r->protected_names, why);
	if (err == 0)
		err = check_network(r, why);
	if (err == 0 && r->nested_git_depth != SANDBOX_UNSET_COUNT &&
	    r->nested_git_depth > NESTED_DEPTH_MAX)
		err = conf_refuse(
		    why, "nested-git-depth is at most %d", NESTED_DEPTH_MAX);
	return err;
}

/* more: adds the lines to those that are there. */
static void
put_lines(char *to, size_t room, const struct strings *list, bool more)
{
	size_t len = more ? strlen(to) : 0;

	if (list->count == 0)
		return;
	to[len] = '\0';
	for (size_t i = 0; i < list->count && !is_none(list); i++) {
		int n = snprintf(to + len, room - len, "%s%s",
		    len > 0 ? "\n" : "", list->items[i]);

		len += (size_t)n;
	}
}

/* The items of the list are lines. */
static void
take_lines(struct strings *rule, const char *value)
{
	_cleanup_free_ char *text = xstrdup(value);
	char *rest = text, *line;

	if (rule->count > 0)
		return;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line != '\0')
			strings_add(rule, line);
}

void
sandbox_rules_apply(const struct sandbox_rules *r, struct sandbox_limits *l)
{
#define SANDBOX_KEY(keyword, type, rule, limit, unset)                         \
	if (r->rule != unset)                                                  \
		l->limit = (__typeof__(l->limit))r->rule;
#define SANDBOX_LIST(keyword, type, member, added)                             \
	put_lines(l->member, sizeof(l->member), &r->member, added);
#include "sandbox_keys.def"
}

void
sandbox_rules_fill(struct sandbox_rules *r, const struct sandbox_limits *l)
{
#define SANDBOX_KEY(keyword, type, rule, limit, unset)                         \
	if (r->rule == unset)                                                  \
		r->rule = (__typeof__(r->rule))l->limit;
#define SANDBOX_LIST(keyword, type, member, added)                             \
	take_lines(&r->member, l->member);
#include "sandbox_keys.def"
}
