/* SPDX-License-Identifier: ISC */
/*
 * `execd ctl': the operator's side of the control socket. Inside this room.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include "base.h"
#include "conf.h"

#include "ctl_socket.h"

#define CTL_WORDS_MAX 32 /* behind the command */

struct ctl_options {
	bool json;
	bool wait; /* `drain' waits for the last session */
	bool end;  /* `token revoke' ends the sessions of the token, too */
	const char *socket, *reason;
	const char *identity, *token, *expires;
	const char *since, *file; /* of `usage' */
	const char *dir, *days;	  /* of `ca' */
	const char *command, *session;
	const char *words[CTL_WORDS_MAX];
};

/* Prints how it is used wrongly. Returns EXIT_USAGE. */
int ctl_usage_error(const char *text, const char *word);

struct ctl_answer {
	struct buf line;
	struct json_doc doc;
	const struct json_value *result, *error; /* one of them is NULL */
};

/* Asks one question. Returns -1 and the answer, which the caller clears; or an
 * exit code after printing why there is none. */
int ctl_ask(const struct ctl_options *o, struct ctl_answer *a);
void ctl_answer_clear(struct ctl_answer *a);

/* Likewise, prints the answer, and returns an exit code. */
int ctl_ask_and_print(const struct ctl_options *o);

/* Prints the sentence of a failure. Returns its exit code. */
int ctl_print_error(const struct json_value *error);
/* Prints what the log said of a reload, as an error. */
void ctl_print_log(const struct json_value *result);

/* These print text of a client or of a file, escaped for a terminal. A column
 * is filled with spaces, and one more follows; a longer text moves the rest of
 * the line. An empty text is a hyphen in its column. */
void ctl_print_text(FILE *to, struct slice text);
void ctl_print_column(struct slice text, size_t width);
/* Prints a column with the spaces before the text. */
void ctl_print_right(struct slice text, size_t width);
/* These return the text of a member, or a hyphen; and its number, or 0 if that
 * is not known. */
struct slice ctl_text_of(const struct json_value *object, const char *key);
uint64_t ctl_number_of(
    const struct json_value *object, const char *key, bool *known);
/* These print a column of a session: a time, processor time, memory. */
void ctl_print_age(const struct json_value *s, const char *key);
void ctl_print_cpu(const struct json_value *s);
void ctl_print_memory(const struct json_value *s);

/* These commands are in ctl_ca.c, ctl_top.c and ctl_usage.c. */
int ctl_ca(const struct ctl_options *o);
int ctl_top(const struct ctl_options *o);
int ctl_usage(const struct ctl_options *o);

/* ctl_token.c: `token new', `token list' and `token revoke'. */
int ctl_token(const struct ctl_options *o);
/* Likewise: `lock' and `unlock'. */
int ctl_lock(const struct ctl_options *o);
/* Prints an error: `what' may be another program's text. Returns EXIT_FAILED.
 */
int ctl_fail(const char *what, const char *why);
/* Says why a system call failed. Returns an exit code. */
int ctl_tell(const char *what, int err);
/* Writes a file, and makes its directory. It appears whole, and in nobody's
 * place: of two who make the same name at the same moment, one is told that it
 * exists. Readers pass over the name that it has before. Returns 0 or -errno.
 */
int ctl_write_file(
    const char *directory, const char *path, const char *text, mode_t mode);
/* Reads a number with m, h, d or w. */
bool ctl_read_span(const char *text, int64_t *seconds);
/* Writes a time as the configuration does, or the word for 0. */
void ctl_show_time(char text[CONF_TIME_CHARS], int64_t at, const char *none);

#endif
