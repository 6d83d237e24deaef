/* SPDX-License-Identifier: ISC */
#include "network_params.h"

static void
finish(struct args *a, const struct args *in)
{
	if (args_end(in) < 0)
		args_fail(a, "%s", in->error);
}

/* A list that may be missing or null. */
static const struct json_value *
opt_strings(struct args *a, const char *key)
{
	const struct json_value *v = json_get(a->object, key);

	return v == NULL || v->type == JSON_NULL ? NULL : args_strings(a, key);
}

/* A map from patterns or paths to what they are; it may be missing or null. */
static const struct json_value *
opt_permissions(struct args *a, const char *key)
{
	const struct json_value *v = json_get(a->object, key);

	if (v == NULL || v->type == JSON_NULL)
		return NULL;
	v = args_string_map(a, key);
	for (const struct json_value *m = v->first; m != NULL; m = m->next)
		if (!json_is(m, "allow") && !json_is(m, "deny"))
			args_fail(a,
			    "unknown variant `%.*s`, expected `allow` or "
			    "`deny`",
			    (int)(m->text.len < 64 ? m->text.len : 64),
			    m->text.ptr);
	return v;
}

static bool
allows_any(const struct json_value *map)
{
	for (const struct json_value *m = map != NULL ? map->first : NULL;
	     m != NULL; m = m->next)
		if (json_is(m, "allow"))
			return true;
	return false;
}

/*
 * Upstream proxies are never used, so that a client that permits one gets less.
 * UDP is refused by the proxy itself, and told there.
 */
static void
decode_config(
    struct args *a, const struct json_value *v, struct network_params *n)
{
	static const char *const modes[] = { "full", "limited", NULL };
	struct args in;

	args_init(&in, a->doc, v, "NetworkProxyConfig");
	n->enabled = args_default_bool(&in, "enabled", false);
	n->socks = args_default_bool(&in, "enableSocks5", true);
	n->limited = args_opt_enum(&in, "mode", modes, 0) == 1;
	n->allow_local = args_default_bool(&in, "allowLocalBinding", false);
	n->transparent = args_default_bool(&in, "transparentTcp", false);
	n->domains = opt_permissions(&in, "domains");
	n->review = opt_strings(&in, "reviewDomains");
	n->wants_unix =
	    args_default_bool(&in, "dangerouslyAllowAllUnixSockets", false);
	n->wants_unix |= allows_any(opt_permissions(&in, "unixSockets"));
	finish(a, &in);
}

void
network_params_decode_proxy(
    struct args *a, const struct json_value *v, struct network_params *n)
{
	const struct json_value *config;
	struct args in;

	*n = (struct network_params){ .given = true };
	args_init(&in, a->doc, v, "NetworkProxyLaunch");
	config = args_object(&in, "proxy", "NetworkProxyConfig");
	n->asks = args_opt_number(&in, "policyDecisionTimeoutMs", &n->ask_ms);
	if (config != NULL)
		decode_config(&in, config, n);
	finish(a, &in);
}

void
network_params_decode_own(
    struct args *a, const struct json_value *v, struct network_params *n)
{
	struct args in;

	*n = (struct network_params){
		.given = true, .own = true, .enabled = true, .socks = true
	};
	args_init(&in, a->doc, v, "Network");
	n->allow = opt_strings(&in, "allow");
	n->deny = opt_strings(&in, "deny");
	finish(a, &in);
}
