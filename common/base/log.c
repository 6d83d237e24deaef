/* SPDX-License-Identifier: ISC */
/*
 * Formats log lines. log_output.c writes them.
 */
#include "log.h"

#include "base.h"
#include "config.h"
#include "log_output.h"

#define LINE_MAX_BYTES 1024

/* Nothing here reads it. */
const char log_version[] __attribute__((used)) = LOG_VERSION EXECD_VERSION;

static const char *log_program = "execd";
static char log_label[48];
static enum log_level log_max = LOG_LEVEL_INFO;
/* each line begins with "<6>" or similar, for the journal or for root's execd
 */
static bool log_prefix;
static void (*log_copy)(const char *line, size_t len);
static bool log_copy_only;
/* the journal adds program and pid, so the line does not */
static bool log_tagged;

/* systemd.exec(5): JOURNAL_STREAM holds device and inode of the journal's
 * socket. They are compared because stderr may have been redirected since. */
static bool
is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream != NULL && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev &&
	       st.st_ino == ino;
}

/* Root's execd reads the logs of its children from such a socket, one for each
 * of them. */
static bool
is_child_log(void)
{
	int type = 0;
	socklen_t len = sizeof(type);

	return getsockopt(STDERR_FILENO, SOL_SOCKET, SO_TYPE, &type, &len) ==
		   0 &&
	       type == SOCK_SEQPACKET;
}

void
log_init(const char *program, enum log_level level)
{
	log_program = program;
	log_max = level;
	log_prefix = is_journal() || is_child_log();
	snprintf(log_label, sizeof(log_label), "%d", (int)getpid());
}

void
log_set_label(const char *label)
{
	snprintf(log_label, sizeof(log_label), "%s", label);
}

void
log_name_by_journal(void)
{
	log_tagged = log_prefix;
}

void
log_copy_to(void (*copy)(const char *line, size_t len), bool only)
{
	log_copy = copy;
	log_copy_only = only;
}

void
log_set_level(enum log_level level)
{
	log_max = level;
}

enum log_level
log_get_level(void)
{
	return log_max;
}

/* Appends text to line and escapes all bytes that are not printable ASCII.
 * Returns the new length. */
static size_t
append(char *line, size_t at, size_t cap, const char *text, size_t len)
{
	for (; len > 0 && at + 5 < cap; text++, len--) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c < 0x7f)
			line[at++] = (char)c;
		else
			at +=
			    (size_t)snprintf(line + at, cap - at, "\\x%02x", c);
	}
	return at;
}

static size_t
append_escaped(char *line, size_t at, size_t cap, const char *text)
{
	return append(line, at, cap, text, strlen(text));
}

__attribute__((format(printf, 3, 0))) static void
log_line(enum log_level level, int err, const char *fmt, va_list ap)
{
	char text[LINE_MAX_BYTES], line[LINE_MAX_BYTES + 128];
	size_t at = 0, begin;
	int saved = errno;

	if (level > log_max)
		return;
	log_flush();
	vsnprintf(text, sizeof(text), fmt, ap);
	if (log_prefix)
		at += (size_t)snprintf(line, sizeof(line), "<%d>", (int)level);
	if (!log_tagged)
		at += (size_t)snprintf(line + at, sizeof(line) - at,
		    "%s[%s]: ", log_program, log_label);
	begin = at;
	at = append_escaped(line, at, sizeof(line) - 80, text);
	if (err != 0) {
		at = append_escaped(line, at, sizeof(line) - 2, ": ");
		at = append_escaped(
		    line, at, sizeof(line) - 2, strerror(err < 0 ? -err : err));
	}
	line[at++] = '\n';
	if (!log_copy_only)
		log_output_put(line, at);
	if (log_copy != NULL)
		log_copy(line + begin, at - begin);
	errno = saved;
}

void
log_at(enum log_level level, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(level, err, fmt, ap);
	va_end(ap);
}

void
log_fatal_errno(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_line(LOG_LEVEL_ERROR, err, fmt, ap);
	va_end(ap);
	exit(1);
}

void
log_pass_on(const char *name, const char *text, size_t len)
{
	char line[2 * LINE_MAX_BYTES];
	size_t at = 0, n = strlen(name);
	int level = LOG_LEVEL_INFO;

	if (len >= 3 && text[0] == '<' && text[2] == '>' && text[1] >= '0' &&
	    text[1] <= '7') {
		level = text[1] - '0';
		text += 3;
		len -= 3;
	}
	log_flush();
	if (log_prefix)
		at += (size_t)snprintf(line, sizeof(line), "<%d>", level);
	if (len < n || memcmp(text, name, n) != 0)
		at = append(line, at, sizeof(line), name, n);
	at = append(line, at, sizeof(line), text, len);
	line[at++] = '\n';
	log_output_put(line, at);
}

bool
log_flush(void)
{
	unsigned long long lost;

	if (!log_output_drain())
		return false;
	lost = log_output_take_lost();
	if (lost > 0)
		log_warn(0, "%llu lines were lost: nobody read the log", lost);
	return true;
}
