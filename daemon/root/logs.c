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
#include "saved.h"

/* The most messages of one program at once; then others have their turn. */
#define MESSAGES_PER_WAKE 16
#define MESSAGES_LAST	  256
#define MESSAGE_MAX	  16384

static struct child_log {
	pid_t pid;
	char name[48];
} * logs;

/* First those of the caller of logs_poll(), then one for each log. */
static struct pollfd *polled;
static size_t nlogs;
static int old_log = -1;

static struct pollfd *
polled_of(size_t i)
{
	return &polled[LOGS_POLL_OWN + i];
}

static struct child_log *
add(int fd, pid_t pid)
{
	logs = xreallocarray(logs, nlogs + 1, sizeof(*logs));
	polled =
	    xreallocarray(polled, LOGS_POLL_OWN + nlogs + 1, sizeof(*polled));
	logs[nlogs] = (struct child_log){ .pid = pid };
	*polled_of(nlogs) = (struct pollfd){ .fd = fd, .events = POLLIN };
	return &logs[nlogs++];
}

static void
drop(size_t i)
{
	close(polled_of(i)->fd);
	nlogs--;
	logs[i] = logs[nlogs];
	*polled_of(i) = *polled_of(nlogs);
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
pass_on(const char *name, const char *text, size_t len)
{
	while (len > 0) {
		size_t n = len < LOG_PASS_MAX ? len : LOG_PASS_MAX;
		const char *end = memchr(text, '\n', n);

		if (end != NULL)
			n = (size_t)(end - text);
		if (n > 0)
			log_pass_on(name, text, n);
		n += end != NULL;
		text += n;
		len -= n;
	}
}

/* What cannot be written now stays with the programs, which count what they
 * lose, unless it is the last. Returns false if nothing comes any more. */
static bool
hear(size_t i, bool last)
{
	static char text[MESSAGE_MAX];
	int messages = last ? MESSAGES_LAST : MESSAGES_PER_WAKE;
	ssize_t n = 1;

	while (messages-- > 0 && (last || log_flush()) &&
	       (n = read(polled_of(i)->fd, text, sizeof(text))) > 0) {
		pass_on(logs[i].name, text, (size_t)n);
		if (n == sizeof(text))
			log_warn(0, "%sa longer message was cut", logs[i].name);
	}
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

int
logs_poll(struct pollfd own[LOGS_POLL_OWN], int timeout)
{
	size_t heard = log_flush() ? nlogs : 0;
	int n;

	if (polled == NULL)
		return poll(own, LOGS_POLL_OWN, timeout);
	memcpy(polled, own, LOGS_POLL_OWN * sizeof(*own));
	n = poll(polled, LOGS_POLL_OWN + heard, timeout);
	memcpy(own, polled, LOGS_POLL_OWN * sizeof(*own));
	/* The last one comes in place of one that is dropped. */
	for (size_t i = n > 0 ? heard : 0; i-- > 0;)
		if (polled_of(i)->revents != 0 && !hear(i, false))
			drop(i);
	return n;
}

void
logs_end(pid_t pid)
{
	for (size_t i = 0; i < nlogs; i++)
		if (logs[i].pid == pid) {
			hear(i, true);
			drop(i);
			return;
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
		saved_fd(s, &polled_of(i)->fd);
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
