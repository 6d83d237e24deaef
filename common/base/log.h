/* SPDX-License-Identifier: ISC */
/*
 * Log lines: one line per event on descriptor 2, never more than one write.
 *
 *	execd-frontend[123]: connection 7: accept: Too many open files
 *
 * Bytes that are not printable ASCII are escaped, so that no peer can forge a
 * line. On the journal's own socket each line begins with "<n>".
 */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARN = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* `program` must outlive the process. Messages above `level` are dropped. */
void log_init(const char *program, enum log_level level);

/* The journal names this program and its pid beside each line: if the log goes
 * there, the line does not repeat them. For the first program of a unit. */
void log_name_by_journal(void);

/*
 * From now on no line waits for whoever reads the log. Lines that find no room
 * wait in a buffer; those that find none there are counted, and the count is
 * logged when the log is read again. For programs that serve others.
 */
void log_never_block(void);

/* Tries to write what waits. False while something still waits: then to be
 * called again within LOG_RETRY_MS. */
#define LOG_RETRY_MS 200
bool log_flush(void);

/* When this can be read, lines of children wait for log_flush(). Or -1: they
 * need no help. */
int log_relay_fd(void);

/* Called when a line begins to wait, for a loop that sleeps otherwise. */
void log_on_wait(void (*hook)(void));

/* Replaces "[pid]" by "[label]": in a pid namespace every pid is 1. */
void log_set_label(const char *label);

/* Lines are appended to this buffer as well, as they were meant, without the
 * name of the program; NULL: no more. */
struct buf;
void log_copy_to(struct buf *copy);

enum log_level log_get_level(void);

#define LOG_PRINTF(n) __attribute__((format(printf, n, n + 1)))

/* The -errno form appends ": TEXT"; err may be 0 for none. */
void log_error(int err, const char *fmt, ...) LOG_PRINTF(2);
void log_warn(int err, const char *fmt, ...) LOG_PRINTF(2);
void log_info(const char *fmt, ...) LOG_PRINTF(1);
void log_debug(const char *fmt, ...) LOG_PRINTF(1);

/* Logs and exits with status 1: going on would be unsafe. */
void log_fatal(const char *fmt, ...) LOG_PRINTF(1) __attribute__((noreturn));
void log_fatal_errno(int err, const char *fmt, ...) LOG_PRINTF(2)
    __attribute__((noreturn));

#endif
