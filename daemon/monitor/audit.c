/*
 * The audit log.
 */
#include "audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "util.h"

/* Of one line: names, a peer and a reason, each of a bounded length. */
#define EVENT_MAX (16u << 10)

#define OPEN_FLAGS (O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)

int
audit_check(const struct audit_rules *a)
{
	_cleanup_close_ int fd = open(a->file, OPEN_FLAGS);
	_cleanup_free_ char *directory = xstrdup(a->file);

	if (fd >= 0 || errno != ENOENT)
		return fd >= 0 ? 0 : -errno;
	strrchr(directory, '/')[1] = '\0';
	return access(directory, W_OK | X_OK) < 0 ? -errno : 0;
}

int
audit_open(struct audit_rules *a)
{
	if (a->file == NULL)
		return 0;
	a->fd = open(a->file, OPEN_FLAGS | O_CREAT, 0600);
	return a->fd < 0 ? -errno : 0;
}

/* RFC 3339, in UTC. */
static void
format_now(char text[40])
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, 40 - n, ".%03ldZ", now.tv_nsec / 1000000);
}

void
audit_begin(struct audit_event *e, const char *event)
{
	char now[40];

	format_now(now);
	buf_init(&e->text, EVENT_MAX);
	json_writer_init(&e->json, &e->text);
	json_begin(&e->json, '{');
	audit_string(e, "time", now);
	audit_string(e, "event", event);
}

void
audit_string(struct audit_event *e, const char *key, const char *value)
{
	json_key(&e->json, key);
	json_cstring(&e->json, value);
}

void
audit_flag(struct audit_event *e, const char *key, bool value)
{
	json_key(&e->json, key);
	json_bool(&e->json, value);
}

void
audit_number(struct audit_event *e, const char *key, uint64_t value)
{
	json_key(&e->json, key);
	json_u64(&e->json, value);
}

/* A line that was cut by a full disk ends before the next one begins. */
static int
append(struct audit_rules *a, const struct buf *line)
{
	ssize_t n;

	if (a->torn && write(a->fd, "\n", 1) != 1)
		return -errno;
	a->torn = false;
	n = write(a->fd, line->data, line->len);
	if (n < 0)
		return -errno;
	a->torn = n < (ssize_t)line->len;
	return a->torn ? -ENOSPC : 0;
}

int
audit_end(struct audit_event *e, struct audit_rules *a)
{
	int err = 0;

	json_end(&e->json, '}');
	buf_puts(&e->text, "\n");
	if (a->file != NULL)
		err = e->text.failed ? -E2BIG : append(a, &e->text);
	if (err < 0)
		log_error(err, "audit log %s", a->file);
	buf_clear(&e->text);
	return err;
}
