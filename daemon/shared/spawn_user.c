/* SPDX-License-Identifier: ISC */
/*
 * The user of a program that the broker has started.
 */
#include "spawn_user.h"

bool
spawn_user_is_list(const uint32_t *list, size_t size)
{
	return size >= sizeof(*list) && list[0] <= SPAWN_USER_GROUPS_MAX &&
	       size >= sizeof(*list) * (list[0] + 1) &&
	       (size == sizeof(*list) * (list[0] + 1) ||
		   ((const char *)list)[size - 1] == '\0');
}

char **
spawn_user_env(const struct spawn_user *o)
{
	char *at = (char *)(o->list + 1 + o->list[0]);
	char *end = (char *)o->list + o->size;
	char **env = xcalloc((size_t)(end - at) + 1, sizeof(*env));

	for (size_t n = 0; at < end; at += strlen(at) + 1)
		env[n++] = at;
	return env;
}

bool
spawn_user_is_within(const struct spawn_user *now, const struct spawn_user *o)
{
	const uint32_t *had = o->list + 1, *end = had + o->list[0];
	const uint32_t *has = now->list + 1, *last = has + now->list[0];
	size_t env = o->size - (size_t)((const char *)end - (char *)o->list);

	for (const uint32_t *at = had; has < last; has++, at++) {
		while (at < end && *at != *has)
			at++;
		if (at == end)
			return false;
	}
	return now->size - (size_t)((const char *)last - (char *)now->list) ==
		   env &&
	       memcmp(last, end, env) == 0;
}

const char *
spawn_user_name(const struct spawn_user *o)
{
	char **env = spawn_user_env(o);

	while (*env != NULL && strncmp(*env, "USER=", 5) != 0)
		env++;
	return *env != NULL ? *env + 5 : NULL;
}

void
spawn_user_clear(struct spawn_user *o)
{
	free(o->list);
	*o = (struct spawn_user){ .list = NULL };
}
