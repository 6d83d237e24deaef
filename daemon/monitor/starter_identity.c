/*
 * An identity on its way to the starter.
 */
#include "starter_identity.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "secret.h"
#include "util.h"

#define LIST_MAX     (4u << 20)
#define GROUPS_MAX   65536
#define STRINGS_MAX  65536
#define VARIABLE_MAX (128u << 10) /* MAX_ARG_STRLEN of execve(2) */

/* --- the monitor's side ------------------------------------------------- */

int
starter_identity_list(const struct identity *id)
{
	uint32_t n = 0;
	struct buf b;
	int fd;

	buf_init(&b, LIST_MAX);
	buf_put_u32(&b, (uint32_t)id->ngids);
	for (size_t i = 0; i < id->ngids; i++)
		buf_put_u32(&b, id->gids[i]);
	while (id->env[n] != NULL)
		n++;
	buf_put_u32(&b, n);
	for (uint32_t i = 0; i < n; i++)
		buf_put_string(&b, id->env[i], strlen(id->env[i]));
	fd = b.failed ? -E2BIG : secret_memfd("identity", b.data, b.len);
	buf_clear(&b);
	return fd;
}

void
starter_identity_fill(struct control_start *s, const struct identity *id)
{
	const struct identity_limits *l = &id->limits;

	*s = (struct control_start){
		.uid = id->uid,
		.gid = id->gid,
		.umask = id->umask,
		.session_processes = l->session_processes,
		.session_cpu_percent = l->session_cpu_percent,
		.limits_command_cpu = l->limits_command_cpu,
		.session_memory_bytes = l->session_memory_bytes,
		.max_processes = l->max_processes,
		.max_open_files = l->max_open_files,
		.max_cpu_ms = l->max_cpu_ms,
		.max_memory_bytes = l->max_memory_bytes,
		.max_file_bytes = l->max_file_bytes,
	};
	snprintf(s->name, sizeof(s->name), "%s", id->name);
	snprintf(s->home, sizeof(s->home), "%s", id->home);
}

/* --- the starter's side ------------------------------------------------- */

static int
read_groups(struct buf_reader *r, struct identity *id)
{
	uint32_t n = buf_get_u32(r);

	if (n > GROUPS_MAX)
		return -E2BIG;
	id->gids = xcalloc(n + 1, sizeof(*id->gids));
	for (id->ngids = 0; id->ngids < n; id->ngids++)
		id->gids[id->ngids] = buf_get_u32(r);
	return 0;
}

static int
read_environment(struct buf_reader *r, struct identity *id)
{
	_cleanup_free_ char *text = xmalloc(VARIABLE_MAX);
	uint32_t n = buf_get_u32(r);

	if (n > STRINGS_MAX)
		return -E2BIG;
	id->env = xcalloc(n + 1, sizeof(*id->env));
	for (uint32_t i = 0; i < n && !r->failed; i++) {
		buf_get_string(r, text, VARIABLE_MAX);
		id->env[i] = xstrdup(r->failed ? "" : text);
	}
	return 0;
}

static int
read_list(struct identity *id, int fd)
{
	struct buf_reader r;
	struct stat st;
	void *data;
	int err;

	if (fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > LIST_MAX)
		return -EBADMSG;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	buf_reader_init(&r, data, (size_t)st.st_size);
	err = read_groups(&r, id);
	if (err == 0)
		err = read_environment(&r, id);
	if (err == 0)
		err = buf_end(&r);
	munmap(data, (size_t)st.st_size);
	return err;
}

struct identity *
starter_identity(const struct control_start *s, int list)
{
	struct identity *id = identity_new(s->name);

	id->home = xstrdup(s->home);
	id->uid = s->uid;
	id->gid = s->gid;
	id->umask = s->umask;
	id->limits = (struct identity_limits){
		.session_processes = s->session_processes,
		.session_cpu_percent = s->session_cpu_percent,
		.limits_command_cpu = s->limits_command_cpu,
		.session_memory_bytes = s->session_memory_bytes,
		.max_processes = s->max_processes,
		.max_open_files = s->max_open_files,
		.max_cpu_ms = s->max_cpu_ms,
		.max_memory_bytes = s->max_memory_bytes,
		.max_file_bytes = s->max_file_bytes,
	};
	if (read_list(id, list) == 0)
		return id;
	identity_unref(id);
	return NULL;
}
