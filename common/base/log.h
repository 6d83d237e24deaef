/* SPDX-License-Identifier: ISC */
/*
 * Writes log lines: one line per event, on descriptor 2.
 *
 *	execd-frontend[123]: connection 7: accept: Too many open files
 *
 * Bytes that are not printable ASCII are escaped, so that no peer can forge a
 * line. If descriptor 2 is the journal's socket or a child's of root's execd,
 * each line begins with "<n>", its priority.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum log_level {
	LOG_LEVEL_NOTHING = 0,
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARN = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* Is in the file of each program that logs, so that `execd doctor` can compare
 * their versions. It is LOG_VERSION and the version. */
#define LOG_VERSION "execd-version "
extern const char log_version[];

/* `program` must stay valid until the process ends. Messages above `level` are
 * dropped. */
void log_init(const char *program, enum log_level level);

/* Omits program and pid from lines that go to the journal, because the journal
 * records both itself. For the first program of a unit only: the journal knows
 * no other by name. */
void log_name_by_journal(void);

/*
 * From now on no log line waits for a slow reader of the log. A line that
 * cannot be written is kept in a buffer. When the buffer is full, lines are
 * dropped and counted, and the count is logged as soon as the log is read
 * again. For programs that serve others.
 */
void log_never_block(void);

/* Tries to write the lines that are kept. Returns false while some remain; the
 * caller then calls again within LOG_RETRY_MS milliseconds. */
#define LOG_RETRY_MS 200
bool log_flush(void);

/* Sets a function that is called when a line has to wait. An event loop that
 * would otherwise sleep can then call log_flush() in time. */
void log_on_wait(void (*hook)(void));

/* Replaces "[pid]" by "[label]". In a pid namespace the pid says little. */
void log_set_label(const char *label);

/* Hands every line to this function as well, or `only` to it, without priority
 * and program name. NULL ends this. */
void log_copy_to(void (*copy)(const char *line, size_t len), bool only);

void log_set_level(enum log_level level);

enum log_level log_get_level(void);

/* Writes a line of another process, without its "\n". If it does not begin with
 * `name`, it gets that. No text can pass for another process's line so. */
#define LOG_PASS_MAX 1200 /* bytes */
void log_pass_on(const char *name, const char *text, size_t len);

#define LOG_PRINTF(n) __attribute__((format(printf, n, n + 1)))

/* A nonzero err is a -errno and appends ": TEXT"; 0 appends nothing. */
void log_at(enum log_level level, int err, const char *fmt, ...) LOG_PRINTF(3);

#define log_error(err, ...) log_at(LOG_LEVEL_ERROR, err, __VA_ARGS__)
#define log_warn(err, ...)  log_at(LOG_LEVEL_WARN, err, __VA_ARGS__)
#define log_info(...)	    log_at(LOG_LEVEL_INFO, 0, __VA_ARGS__)
#define log_debug(...)	    log_at(LOG_LEVEL_DEBUG, 0, __VA_ARGS__)

/* Logs and exits with status 1, for cases where going on would be unsafe. */
void log_fatal_errno(int err, const char *fmt, ...) LOG_PRINTF(2)
    __attribute__((noreturn));

#define log_fatal(...) log_fatal_errno(0, __VA_ARGS__)
