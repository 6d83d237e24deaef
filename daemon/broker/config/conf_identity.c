/* SPDX-License-Identifier: ISC */
/*
 * [identity NAME] of execd.conf(5).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf.h"
#include "spawn_client.h"
#include "util.h"

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
	KEY("max-sessions", conf_optional_count, limits.max_sessions),
	KEY("session-deadline", conf_optional_duration,
	    limits.session_deadline_ms),
	KEY("command-deadline", conf_optional_duration,
	    limits.command_deadline_ms),
	KEY("output-rate", conf_optional_bytes, limits.output_rate),
	KEY("record-tty", conf_path, record.directory),
	KEY("record-tty-input", conf_bool, record.input),
	KEY("record-tty-max", conf_bytes, record.max_bytes),
	KEY("record-tty-required", conf_bool, record.required),
	KEY("audit-files", audit_files_type, audit_files),
	KEY("session-processes", conf_optional_count, limits.session_processes),
	KEY("session-memory", conf_optional_bytes, limits.session_memory_bytes),
	KEY("session-cpu", conf_optional_percent, limits.session_cpu_percent),
	KEY("max-processes", conf_optional_count, limits.max_processes),
	KEY("max-open-files", conf_optional_count, limits.max_open_files),
	KEY("max-cpu-time", conf_optional_duration, limits.max_cpu_ms),
	KEY("max-memory", conf_optional_bytes, limits.max_memory_bytes),
	KEY("max-file-size", conf_optional_bytes, limits.max_file_bytes),
#include "sandbox_keys.def"
};
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
	return i < c->nidentities ? c->identities[i] : NULL;
}

static int
check_environment(const struct strings *env, char *why)
{
	for (size_t i = 0; i < env->count; i++) {
		const char *equals = strchr(env->items[i], '=');

		if (equals != NULL && equals != env->items[i])
			continue;
		snprintf(why, CONF_WHY_MAX,
		    "environment: `%.100s` is not NAME=VALUE", env->items[i]);
		return -EINVAL;
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
	return err < 0 ? conf_refuse(why, "record-tty: %.200s%s",
			     rules->directory, found.why)
		       : 0;
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
	if (id->limits.max_cpu_ms % 1000 != 0) {
		snprintf(why, CONF_WHY_MAX,
		    "max-cpu-time: only whole seconds can be enforced");
		return -EINVAL;
	}
	if (id->limits.output_rate > 0 &&
	    id->limits.output_rate < OUTPUT_RATE_MIN)
		return conf_refuse(why, "output-rate: must be at least %uK",
		    OUTPUT_RATE_MIN >> 10);
	if (!spawn_is_root() && (id->limits.session_processes > 0 ||
				    id->limits.session_memory_bytes > 0 ||
				    id->limits.session_cpu_percent > 0))
		return conf_refuse(why,
		    "session-processes, session-memory and session-cpu need "
		    "root and its control groups");
	return identity_resolve(id, why) < 0 ? -EINVAL : 0;
}

const struct conf_section conf_identity = {
	.name = "identity",
	.keys = identity_keys,
	.nkeys = nitems(identity_keys),
	.add = add_identity,
	.object = get_identity,
	.check = check_identity,
};
