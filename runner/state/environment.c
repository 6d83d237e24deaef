/* SPDX-License-Identifier: ISC */
#include "environment.h"

#include <ctype.h>

#include "siphash.h"
#include "table.h"

struct variable {
	struct table_node node; /* variables.names */
	struct slice name, value;
	bool dropped;
};

/* In the order of their first appearance; a table finds them by name. */
struct variables {
	struct variable *all; /* with room for every candidate */
	size_t count;
	struct table names;
};

static const char *const core_names[] = { "HOME", "LANG", "LC_ALL", "LC_CTYPE",
	"LOGNAME", "PATH", "SHELL", "TEMP", "TMP", "TMPDIR", "USER" };

static const char *const default_excludes[] = { "*KEY*", "*SECRET*",
	"*TOKEN*" };

/*
 * The usual glob with two positions: on a mismatch only the last star takes one
 * more character.
 */
bool
environment_matches(struct slice pattern, struct slice name)
{
	size_t p = 0, n = 0, star = SIZE_MAX, mark = 0;

	while (n < name.len) {
		char c = p < pattern.len ? pattern.ptr[p] : '\0';

		if (p < pattern.len && c == '*') {
			star = p++;
			mark = n;
		} else if (p < pattern.len &&
			   (c == '?' ||
			       toupper((unsigned char)c) ==
				   toupper((unsigned char)name.ptr[n]))) {
			p++;
			n++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			n = ++mark;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.ptr[p] == '*')
		p++;
	return p == pattern.len && pattern.len > 0;
}

static bool
matches_any(const struct json_value *patterns, struct slice name)
{
	for (const struct json_value *v = patterns->first; v; v = v->next)
		if (environment_matches(v->text, name))
			return true;
	return false;
}

static bool
is_core(struct slice name)
{
	for (size_t i = 0; i < nitems(core_names); i++)
		if (slice_equal(name, slice_of(core_names[i])))
			return true;
	return false;
}

static bool
is_inherited(const struct env_policy *policy, enum env_inherit inherit,
    struct slice name)
{
	if (inherit == ENV_INHERIT_CORE && !is_core(name))
		return false;
	if (policy == NULL)
		return true;
	if (!policy->ignore_default_excludes)
		for (size_t i = 0; i < nitems(default_excludes); i++)
			if (environment_matches(
				slice_of(default_excludes[i]), name))
				return false;
	return !matches_any(policy->exclude, name);
}

static bool
match_name(const struct table_node *node, const void *key)
{
	return slice_equal(
	    TABLE_OBJECT(node, const struct variable, node)->name,
	    *(const struct slice *)key);
}

static void
set(struct variables *v, struct slice name, struct slice value)
{
	uint64_t hash = siphash_bytes(name.ptr, name.len);
	struct table_node *node =
	    table_find(&v->names, hash, match_name, &name);
	struct variable *var;

	if (node != NULL) {
		var = TABLE_OBJECT(node, struct variable, node);
	} else {
		var = &v->all[v->count++];
		var->name = name;
		table_insert(&v->names, &var->node, hash);
	}
	var->value = value;
	var->dropped = false;
}

static void
inherit(struct variables *v, char *const *base, const struct env_policy *policy,
    enum env_inherit inherit)
{
	for (; *base != NULL; base++) {
		const char *equals = strchr(*base, '=');
		struct slice name;

		if (equals == NULL)
			continue;
		name = (struct slice){ *base, (size_t)(equals - *base) };
		if (is_inherited(policy, inherit, name))
			set(v, name,
			    (struct slice){ equals + 1, strlen(equals + 1) });
	}
}

/* Returns false if there is a NUL byte, which no environment can hold. */
static bool
set_all(struct variables *v, const struct json_value *map)
{
	for (const struct json_value *m = map->first; m != NULL; m = m->next) {
		if (memchr(m->key.ptr, '\0', m->key.len) != NULL ||
		    memchr(m->text.ptr, '\0', m->text.len) != NULL)
			return false;
		set(v, m->key, m->text);
	}
	return true;
}

static void
apply_include_only(struct variables *v, const struct json_value *patterns)
{
	for (size_t i = 0; patterns->count > 0 && i < v->count; i++)
		if (!matches_any(patterns, v->all[i].name))
			v->all[i].dropped = true;
}

/* Allocates the vector and its strings as one block. */
static char **
flatten(const struct variables *v)
{
	size_t n = 0, bytes = 0;
	char **envp, *at;

	for (size_t i = 0; i < v->count; i++)
		bytes += v->all[i].name.len + v->all[i].value.len + 2;
	envp = xmalloc((v->count + 1) * sizeof(char *) + bytes);
	at = (char *)(envp + v->count + 1);
	for (size_t i = 0; i < v->count; i++) {
		const struct variable *var = &v->all[i];

		if (var->dropped)
			continue;
		envp[n++] = at;
		memcpy(at, var->name.ptr, var->name.len);
		at += var->name.len;
		*at++ = '=';
		memcpy(at, var->value.ptr, var->value.len);
		at += var->value.len;
		*at++ = '\0';
	}
	envp[n] = NULL;
	return envp;
}

/* The variables of a vector, and room for some more. */
static struct variables
begin(char *const *envp, size_t more)
{
	struct variables v = { 0 };
	size_t n = more;

	for (char *const *e = envp; *e != NULL; e++)
		n++;
	v.all = xcalloc(n, sizeof(*v.all));
	inherit(&v, envp, NULL, ENV_INHERIT_ALL);
	return v;
}

static char **
finish(struct variables *v, bool fine)
{
	char **envp = fine ? flatten(v) : NULL;

	table_clear(&v->names);
	free(v->all);
	return envp;
}

char **
environment_build(char *const *base, const struct env_policy *policy,
    char *const *exports, const struct json_value *env)
{
	struct variables v = { 0 };
	size_t candidates = env->count + (policy ? policy->set->count : 0);
	bool fine = true;

	for (char *const *e = base; policy != NULL && *e != NULL; e++)
		candidates++;
	for (char *const *e = exports; e != NULL && *e != NULL; e++)
		candidates++;
	v.all = xcalloc(candidates, sizeof(*v.all));
	if (policy != NULL && policy->inherit != ENV_INHERIT_NONE)
		inherit(&v, base, policy, policy->inherit);
	if (exports != NULL)
		inherit(&v, exports, policy, ENV_INHERIT_ALL);
	if (policy != NULL) {
		fine = set_all(&v, policy->set);
		apply_include_only(&v, policy->include_only);
	}
	return finish(&v, fine && set_all(&v, env));
}

char **
environment_with(char *const *envp, const char *name, struct slice value)
{
	struct variables v = begin(envp, 1);

	set(&v, slice_of(name), value);
	return finish(&v, memchr(value.ptr, '\0', value.len) == NULL);
}

char **
environment_default(
    char *const *envp, const char *const *names, const char *value)
{
	struct variables v;
	size_t more = 0;

	while (names[more] != NULL)
		more++;
	v = begin(envp, more);
	for (; *names != NULL; names++)
		if (environment_get(envp, *names) == NULL)
			set(&v, slice_of(*names), slice_of(value));
	return finish(&v, true);
}

const char *
environment_get(char *const *envp, const char *name)
{
	size_t n = strlen(name);

	for (; *envp != NULL; envp++)
		if (!strncmp(*envp, name, n) && (*envp)[n] == '=')
			return *envp + n + 1;
	return NULL;
}

/* --- arguments ---------------------------------------------------------- */

char **
argv_build(const struct json_value *strings, const struct slice *arg0)
{
	size_t n = 0, bytes = arg0 != NULL ? arg0->len + 1 : 0;
	char **argv, *at;

	for (const struct json_value *v = strings->first; v; v = v->next)
		bytes += v->text.len + 1;
	argv = xmalloc((strings->count + 1) * sizeof(char *) + bytes);
	at = (char *)(argv + strings->count + 1);
	for (const struct json_value *v = strings->first; v; v = v->next) {
		struct slice s = n == 0 && arg0 != NULL ? *arg0 : v->text;

		if (memchr(s.ptr, '\0', s.len) != NULL) {
			free(argv);
			return NULL;
		}
		argv[n++] = at;
		memcpy(at, s.ptr, s.len);
		at += s.len;
		*at++ = '\0';
	}
	argv[n] = NULL;
	return argv;
}

/* --- the way to a proxy ------------------------------------------------- */

enum value { TO_HTTP, TO_SOCKS, NOT_THROUGH, LITERAL };

/* The peer sets the same ones. */
static const struct proxy_variable {
	const char *name;
	enum value value;
	const char *literal;
} variables[] = {
	{ "HTTP_PROXY", TO_HTTP, NULL },
	{ "http_proxy", TO_HTTP, NULL },
	{ "HTTPS_PROXY", TO_HTTP, NULL },
	{ "https_proxy", TO_HTTP, NULL },
	{ "WS_PROXY", TO_HTTP, NULL },
	{ "ws_proxy", TO_HTTP, NULL },
	{ "WSS_PROXY", TO_HTTP, NULL },
	{ "wss_proxy", TO_HTTP, NULL },
	{ "NPM_CONFIG_PROXY", TO_HTTP, NULL },
	{ "npm_config_proxy", TO_HTTP, NULL },
	{ "NPM_CONFIG_HTTP_PROXY", TO_HTTP, NULL },
	{ "npm_config_http_proxy", TO_HTTP, NULL },
	{ "NPM_CONFIG_HTTPS_PROXY", TO_HTTP, NULL },
	{ "npm_config_https_proxy", TO_HTTP, NULL },
	{ "YARN_HTTP_PROXY", TO_HTTP, NULL },
	{ "YARN_HTTPS_PROXY", TO_HTTP, NULL },
	{ "BUNDLE_HTTP_PROXY", TO_HTTP, NULL },
	{ "BUNDLE_HTTPS_PROXY", TO_HTTP, NULL },
	{ "DOCKER_HTTP_PROXY", TO_HTTP, NULL },
	{ "DOCKER_HTTPS_PROXY", TO_HTTP, NULL },
	{ "PIP_PROXY", TO_HTTP, NULL },
	{ "ALL_PROXY", TO_SOCKS, NULL },
	{ "all_proxy", TO_SOCKS, NULL },
	{ "FTP_PROXY", TO_SOCKS, NULL },
	{ "ftp_proxy", TO_SOCKS, NULL },
	{ "NO_PROXY", NOT_THROUGH, NULL },
	{ "no_proxy", NOT_THROUGH, NULL },
	{ "NPM_CONFIG_NOPROXY", NOT_THROUGH, NULL },
	{ "npm_config_noproxy", NOT_THROUGH, NULL },
	{ "BUNDLE_NO_PROXY", NOT_THROUGH, NULL },
	{ "CODEX_NETWORK_PROXY_ACTIVE", LITERAL, "1" },
	{ "NODE_USE_ENV_PROXY", LITERAL, "1" },
	{ "ELECTRON_GET_USE_PROXY", LITERAL, "true" },
};

static void
write_value(char *to, const struct proxy_variable *v,
    const struct proxy_environment *proxy)
{
	switch (v->value) {
	case TO_HTTP:
	case TO_SOCKS:
		snprintf(to, PROXY_VALUE_MAX, "%s://127.0.0.1:%u",
		    v->value == TO_SOCKS && proxy->socks ? "socks5h" : "http",
		    proxy->port);
		break;
	case NOT_THROUGH:
		snprintf(to, PROXY_VALUE_MAX, "%s", proxy->not_through);
		break;
	case LITERAL:
		snprintf(to, PROXY_VALUE_MAX, "%s", v->literal);
	}
}

char **
proxy_environment(char *const *envp, const struct proxy_environment *proxy)
{
	char values[nitems(variables)][PROXY_VALUE_MAX];
	struct variables v = begin(envp, nitems(variables));

	for (size_t i = 0; i < nitems(variables); i++) {
		write_value(values[i], &variables[i], proxy);
		set(&v, slice_of(variables[i].name), slice_of(values[i]));
	}
	return finish(&v, true);
}
