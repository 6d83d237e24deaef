/* SPDX-License-Identifier: ISC */
/*
 * `execd ctl': the operator's side of the control socket. Inside this room.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include "base.h"
#include "conf.h"

#include "ctl_socket.h"

#define CTL_WORDS_MAX 2 /* behind the command */

struct ctl_options {
	bool json;
	bool wait; /* `drain' waits for the last session */
	bool end;  /* `token revoke' ends the sessions of the token, too */
	const char *socket, *reason;
	const char *identity, *token, *expires;
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

/* ctl_token.c: `token new', `token list' and `token revoke'. */
int ctl_token(const struct ctl_options *o);
/* Likewise: `lock' and `unlock'. */
int ctl_lock(const struct ctl_options *o);
/* Writes a time as the configuration does, or the word for 0. */
void ctl_show_time(char text[CONF_TIME_CHARS], int64_t at, const char *none);

#endif
