/* SPDX-License-Identifier: ISC */
/*
 * The user of a program that the broker has started.
 */
#include "spawn_user.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util.h"

static int
read_groups(struct buf_reader *r, struct spawn_user *o)
{
	uint32_t n = buf_get_u32(r);

	if (n > SPAWN_USER_GROUPS_MAX)
		return -E2BIG;
	o->gids = xcalloc(n + 1, sizeof(*o->gids));
	for (o->ngids = 0; o->ngids < n; o->ngids++)
		o->gids[o->ngids] = buf_get_u32(r);
	return 0;
}

static int
read_environment(struct buf_reader *r, struct spawn_user *o)
{
	_cleanup_free_ char *text = xmalloc(SPAWN_USER_VARIABLE_MAX);
	uint32_t n = buf_get_u32(r);

	if (n > SPAWN_USER_STRINGS_MAX)
		return -E2BIG;
	o->env = xcalloc(n + 1, sizeof(*o->env));
	for (uint32_t i = 0; i < n && !r->failed; i++) {
		buf_get_string(r, text, SPAWN_USER_VARIABLE_MAX);
		o->env[i] = xstrdup(r->failed ? "" : text);
	}
	return 0;
}

static int
read_list(struct spawn_user *o, const void *data, size_t len)
{
	struct buf_reader r;
	int err;

	buf_reader_init(&r, data, len);
	err = read_groups(&r, o);
	if (err == 0)
		err = read_environment(&r, o);
	return err < 0 ? err : buf_end(&r);
}

int
spawn_user_read(struct spawn_user *o, const struct control_user *who, int list)
{
	struct stat st;
	void *data;
	int err;

	*o = (struct spawn_user){ .who = *who };
	/* A file that can shrink could end the program that maps it. */
	if (fcntl(list, F_GET_SEALS) < 0 ||
	    !(fcntl(list, F_GET_SEALS) & F_SEAL_SHRINK) ||
	    fstat(list, &st) < 0 || st.st_size <= 0 ||
	    st.st_size > SPAWN_USER_LIST_MAX)
		return -EBADMSG;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, list, 0);
	if (data == MAP_FAILED)
		return -errno;
	err = read_list(o, data, (size_t)st.st_size);
	munmap(data, (size_t)st.st_size);
	if (err < 0)
		spawn_user_clear(o);
	return err;
}

void
spawn_user_clear(struct spawn_user *o)
{
	for (char **e = o->env; e && *e; e++)
		free(*e);
	free(o->env);
	free(o->gids);
	*o = (struct spawn_user){ .ngids = 0 };
}
