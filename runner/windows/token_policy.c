/* SPDX-License-Identifier: ISC */
#include "token_policy.h"

static int
refuse(char *error, const char *what)
{
	snprintf(error, ARGS_ERROR_MAX,
	    "a restricted token of Windows cannot enforce this policy: %s",
	    what);
	return -EACCES;
}

static int
check_network(bool enabled, bool network_is_blocked, char *error)
{
	if (enabled || network_is_blocked)
		return 0;
	return refuse(error,
	    "the network is restricted; run execd-runner as an account that "
	    "the firewall blocks and say so with --network-is-blocked");
}

static int
check_sids(const struct frames_spawn *s, char *error)
{
	if (s->cap_sids != NULL && s->cap_sids->count > 0)
		return 0;
	return refuse(error,
	    "cap_sids is empty, so nothing says where the command may write");
}

/* --- version 1 ---------------------------------------------------------- */

/* Members whose effect is the parent's, which sets the ACLs. */
static bool
is_known(struct slice key)
{
	static const char *const known[] = { "type", "network_access",
		"writable_roots", "exclude_tmpdir_env_var",
		"exclude_slash_tmp" };

	for (size_t i = 0; i < nitems(known); i++)
		if (slice_equal(
			key, (struct slice){ known[i], strlen(known[i]) }))
			return true;
	return false;
}

static int
check_legacy(const struct json_value *v, bool *network, char *error)
{
	const struct json_value *type = json_get(v, "type");
	const struct json_value *access = json_get(v, "network_access");

	if (type == NULL ||
	    !(json_is(type, "read-only") || json_is(type, "workspace-write")))
		return refuse(error, "its type is not known");
	if (access != NULL && access->type != JSON_BOOL)
		return refuse(error, "network_access is not a boolean");
	for (const struct json_value *m = v->first; m != NULL; m = m->next)
		if (!is_known(m->key))
			return refuse(
			    error, "it has a member that is not known");
	*network = access != NULL && access->boolean;
	return 0;
}

static int
decide_legacy(struct slice text, bool *network, char *error)
{
	struct json_doc doc;
	int err;

	*network = false;
	if (slice_equal(text, SLICE("read-only")) ||
	    slice_equal(text, SLICE("workspace-write")))
		return 0;
	if (json_parse(&doc, text.ptr, text.len) < 0)
		err = refuse(error, "it is neither a preset nor JSON");
	else if (doc.root->type != JSON_OBJECT)
		err = refuse(error, "it is no object");
	else
		err = check_legacy(doc.root, network, error);
	json_clear(&doc);
	return err;
}

static bool
is_unrestricted(struct slice policy)
{
	return slice_equal(policy, SLICE("danger-full-access")) ||
	       slice_equal(policy, SLICE("{\"type\":\"danger-full-access\"}"));
}

/* --- version 6 ---------------------------------------------------------- */

static bool
is_text(const struct json_value *v, const char *text)
{
	return v != NULL && v->type == JSON_STRING && json_is(v, text);
}

/* Returns 1 if the entry lets all be read, 0, or -EACCES. */
static int
check_entry(const struct json_value *e, char *error)
{
	const struct json_value *access = json_get(e, "access");
	const struct json_value *path = json_get(e, "path");
	const struct json_value *type, *value;

	if (path == NULL || path->type != JSON_OBJECT)
		return refuse(error, "an entry has no path");
	if (!is_text(access, "read") && !is_text(access, "write"))
		return refuse(error, "an entry denies access");
	type = json_get(path, "type");
	if (!is_text(type, "path") && !is_text(type, "special"))
		return refuse(error, "an entry has a pattern");
	value = json_get(path, "value");
	if (!is_text(type, "special"))
		return 0;
	if (value == NULL || value->type != JSON_OBJECT)
		return refuse(error, "an entry has no special path");
	if (!is_text(json_get(value, "kind"), "root"))
		return 0;
	if (!is_text(access, "read"))
		return refuse(error, "an entry lets all be written");
	return 1;
}

static int
check_entries(const struct json_value *list, char *error)
{
	bool reads_all = false;

	if (list == NULL || list->type != JSON_ARRAY)
		return refuse(error, "it has no entries");
	for (const struct json_value *e = list->first; e != NULL; e = e->next) {
		int r = e->type == JSON_OBJECT
			    ? check_entry(e, error)
			    : refuse(error, "an entry is no object");

		if (r < 0)
			return r;
		reads_all |= r == 1;
	}
	if (!reads_all)
		return refuse(error,
		    "reading is restricted: no entry lets the root be read");
	return 0;
}

static int
decide_profile(const struct json_value *profile, bool *network, char *error)
{
	const struct json_value *files = json_get(profile, "file_system");
	const struct json_value *net = json_get(profile, "network");

	if (!is_text(json_get(profile, "type"), "managed"))
		return refuse(error, "the profile is not managed");
	if (!is_text(net, "restricted") && !is_text(net, "enabled"))
		return refuse(error, "its network is not known");
	*network = is_text(net, "enabled");
	if (files == NULL || files->type != JSON_OBJECT ||
	    !is_text(json_get(files, "type"), "restricted"))
		return refuse(error, "its file_system is not restricted");
	return check_entries(json_get(files, "entries"), error);
}

int
token_policy_decide(struct token_policy *p, const struct frames_spawn *s,
    bool network_is_blocked, char *error)
{
	bool network = false;
	int err;

	*p = (struct token_policy){ .write_restricted = true };
	if (s->profile == NULL && is_unrestricted(s->policy)) {
		p->write_restricted = false;
		return 0;
	}
	err = s->profile != NULL ? decide_profile(s->profile, &network, error)
				 : decide_legacy(s->policy, &network, error);
	if (err == 0)
		err = check_network(network, network_is_blocked, error);
	if (err == 0)
		err = check_sids(s, error);
	return err;
}
