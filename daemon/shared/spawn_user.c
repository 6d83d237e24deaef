/* SPDX-License-Identifier: ISC */
/*
 * The user of a program that the broker has started.
 */
#include "spawn_user.h"

#include <sys/stat.h>

#include "base.h"

bool
spawn_user_is_list(const uint32_t *list, size_t size)
{
	return size >= sizeof(*list) && list[0] <= SPAWN_USER_GROUPS_MAX &&
	       size >= sizeof(*list) * (list[0] + 1) &&
	       (size == sizeof(*list) * (list[0] + 1) ||
		   ((const char *)list)[size - 1] == '\0');
}

int
spawn_user_read(struct spawn_user *o, const struct control_user *who, int list)
{
	int seals = fcntl(list, F_GET_SEALS);
	struct stat st;

	/* A file that can change could say something else afterwards. Only a
	 * file in memory has seals, and reading it does not wait. */
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(list, &st) < 0 ||
	    st.st_size <= 0 || st.st_size > SPAWN_USER_LIST_MAX)
		return -EBADMSG;
	*o = (struct spawn_user){ .who = *who, .size = (size_t)st.st_size };
	o->list = xmalloc(o->size);
	if (pread(list, o->list, o->size, 0) == (ssize_t)o->size &&
	    spawn_user_is_list(o->list, o->size))
		return 0;
	spawn_user_clear(o);
	return -EBADMSG;
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
	o->list = NULL;
}
