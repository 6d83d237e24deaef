/* SPDX-License-Identifier: ISC */
/*
 * The logs of the programs that root's execd starts. Each program has a socket
 * of its own as descriptor 2. Whoever takes it from the program can write lines
 * that bear the program's name, and can do nothing to root's log: not empty it,
 * not seek in it, and not make root wait for it. The broker, which none of its
 * user's processes can look into, writes to the log itself.
 */
#include "base.h"
#include "root.h"

#include "disk.h"
#include "saved.h"

/* After so many bytes a log rests, so that a session's does not fill the disk.
 * Its programs keep lines meanwhile, and count what they lose. */
#define MESSAGE_MAX   16384
#define BYTES	      (1u << 20)
#define SESSION_BYTES (64u << 10)
#define REST_MS	      5000

static struct child_log {
	pid_t pid;
	char name[48];
	int fd;
	size_t bytes; /* since it rested */
	int64_t rests_until_ms;
} * logs;
static size_t nlogs;
static int old_log = -1;

static struct child_log *
add(int fd, pid_t pid)
{
	logs = xreallocarray(logs, nlogs + 1, sizeof(*logs));
	logs[nlogs] = (struct child_log){ .pid = pid, .fd = fd };
	return &logs[nlogs++];
}

static void
drop(size_t i)
{
	int fd = logs[i].fd;
	char byte = 0;

	/* Nothing more can come, but a descriptor may wait. */
	shutdown(fd, SHUT_RDWR);
	if (disk_receive(fd, &byte, 1) == 0)
		close(fd);
	else
		disk_close(fd);
	logs[i] = logs[--nlogs];
}

void
logs_keep(int pair[2], pid_t pid, const char *program, const char *session)
{
	struct child_log *l;

	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return;
	}
	l = add(pair[0], pid);
	/* As the program calls itself (log_set_label()). */
	if (session != NULL)
		snprintf(l->name, sizeof(l->name),
		    "%s[session %.7s]: ", program, session);
	else
		snprintf(
		    l->name, sizeof(l->name), "%s[%d]: ", program, (int)pid);
}

static void
pass_on(struct child_log *l, const char *text, size_t len)
{
	while (len > 0) {
		size_t most = len < LOG_PASS_MAX ? len : LOG_PASS_MAX;
		const char *end = memchr(text, '\n', most);
		size_t n = end != NULL ? (size_t)(end - text) : most;

		if (n > 0)
			log_pass_on(l->name, text, n);
		l->bytes += n + strlen(l->name);
		n += end != NULL;
		text += n;
		len -= n;
	}
}

static ssize_t
receive(int fd, char text[MESSAGE_MAX])
{
	ssize_t n = disk_receive(fd, text, MESSAGE_MAX);

	/* An older version had a pipe. */
	if (n == -ENOTSOCK && (n = read(fd, text, MESSAGE_MAX)) < 0)
		n = -errno;
	return n;
}

/* What cannot be written now stays with the programs, which count what they
 * lose, unless it is the last. Returns false if nothing comes any more. */
static bool
hear(struct child_log *l, bool last)
{
	static char text[MESSAGE_MAX];
	size_t most = strstr(l->name, "[session ") ? SESSION_BYTES : BYTES;
	ssize_t n = 1;

	while ((last || log_flush()) && (n = receive(l->fd, text)) > 0) {
		pass_on(l, text, (size_t)n);
		if (n == sizeof(text))
			log_warn(0, "%sa longer message was cut", l->name);
		if (l->bytes < most)
			continue;
		l->bytes = 0;
		l->rests_until_ms = now_ms() + REST_MS;
		log_info(
		    "%stoo many lines: later ones wait, or are lost", l->name);
		break;
	}
	if (n == -EBADMSG)
		log_warn(0, "%sno more is read: it sent a descriptor", l->name);
	return n > 0 || n == -EAGAIN;
}

int
logs_poll(struct pollfd own[LOGS_POLL_OWN], int timeout)
{
	size_t heard = log_flush() ? nlogs : 0;
	_cleanup_free_ struct pollfd *all =
	    xcalloc(LOGS_POLL_OWN + heard, sizeof(*all));
	struct pollfd *polled = all + LOGS_POLL_OWN;
	int n;

	memcpy(all, own, LOGS_POLL_OWN * sizeof(*own));
	for (size_t i = 0; i < heard; i++) {
		/* Of a log that rests only the end is heard. */
		polled[i].fd = logs[i].fd;
		polled[i].events =
		    now_ms() < logs[i].rests_until_ms ? 0 : POLLIN;
		if (polled[i].events == 0 && (unsigned)timeout > REST_MS)
			timeout = REST_MS;
	}
	n = poll(all, LOGS_POLL_OWN + heard, timeout);
	memcpy(own, all, LOGS_POLL_OWN * sizeof(*own));
	/* The last one comes in place of one that is dropped. */
	for (size_t i = n > 0 ? heard : 0; i-- > 0;)
		if (polled[i].revents != 0 &&
		    !hear(&logs[i], polled[i].events == 0))
			drop(i);
	return n;
}

void
logs_end(pid_t pid)
{
	for (size_t i = nlogs; i-- > 0;)
		if (logs[i].pid == pid) {
			hear(&logs[i], true);
			drop(i);
		}
}

void
logs_save(struct saved *s)
{
	uint64_t n = nlogs;
	int relay = -1;

	if (s->version < 8) {
		/* There could be one pipe before the log, for all. */
		saved_fd(s, &relay);
		saved_fd(s, &old_log);
		if (relay >= 0)
			add(relay, 0);
		return;
	}
	SAVE(s, n);
	for (size_t i = 0; i < n && !s->failed; i++) {
		if (s->mode == SAVED_READ)
			add(-1, 0);
		saved_fd(s, &logs[i].fd);
		SAVE(s, logs[i].pid);
		saved_text(s, logs[i].name, sizeof(logs[i].name));
	}
}

void
logs_resume(void)
{
	if (old_log >= 0 && dup2(old_log, STDERR_FILENO) >= 0)
		close(old_log);
}
