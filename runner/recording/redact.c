/* SPDX-License-Identifier: ISC */
/*
 * Removes secrets from text for a record. A word may be a whole script, so it
 * is searched as text: for tokens between blanks, quotes and the like.
 */
#include "redact.h"

#include <ctype.h>

#include "environment.h"
#include "siphash.h"

/* --- rules -------------------------------------------------------------- */

/* Rules for names, values and options that are secrets. */

/* Parts of names; hyphens and underscores in a name are ignored. */
static const char *const secret_names[] = { "password", "passwd", "passphrase",
	"secret", "token", "apikey", "accesskey", "privatekey", "credential",
	"authorization", "cookie" };

/* Names with these ends tell where a secret is, or how much of it there is. */
static const char *const harmless_ends[] = { "file", "path", "dir", "tokens",
	"type", "ttl" };

/* Matched as whole words. */
static const char *const short_names[] = { "pass", "auth", "pwd" };

/* Options followed by NAME:PASSWORD. */
static const char *const pair_options[] = { "-u", "-U", "--user",
	"--proxy-user" };

/* Values that are recognized as secrets by their form. */
static const char *const secret_values[] = { "ghp_*", "gho_*", "ghu_*", "ghs_*",
	"github_pat_*", "glpat-*", "xox?-*", "AKIA????????????????",
	"sk-????????????????*", "eyJ*.eyJ*.*" };

static size_t
take_lines(struct slice list[REDACT_PATTERNS_MAX], const char *text)
{
	size_t n = 0;

	while (*text != '\0' && n < REDACT_PATTERNS_MAX) {
		size_t len = strcspn(text, "\n");

		if (len > 0)
			list[n++] = (struct slice){ text, len };
		text += len + (text[len] == '\n');
	}
	return n;
}

void
redact_rules_init(
    struct redact_rules *rules, const char *names, const char *values)
{
	rules->nnames = take_lines(rules->names, names);
	rules->nvalues = take_lines(rules->values, values);
}

/* --- what is a secret --------------------------------------------------- */

static struct slice
compared(struct slice s)
{
	if (s.len > REDACT_COMPARED_BYTES)
		s.len = REDACT_COMPARED_BYTES;
	return s;
}

static bool
is_among(struct slice s, const struct slice *patterns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (environment_matches(patterns[i], s))
			return true;
	return false;
}

static bool
ends_with(const char *s, const char *end)
{
	size_t len = strlen(s), n = strlen(end);

	return len >= n && strcmp(s + len - n, end) == 0;
}

/*
 * The word must be the whole name or follow a separator, as in DB_PASS. "pwd"
 * counts only after a separator.
 */
static bool
has_short_name(struct slice name)
{
	for (size_t i = 0; i < nitems(short_names); i++) {
		size_t n = strlen(short_names[i]);

		if (name.len >= n &&
		    strncasecmp(name.ptr + name.len - n, short_names[i], n) ==
			0 &&
		    (name.len == n ? i < 2
				   : strchr("_-.",
					 name.ptr[name.len - n - 1]) != NULL))
			return true;
	}
	return false;
}

static bool
is_built_in_name(struct slice name)
{
	char word[REDACT_COMPARED_BYTES + 1];
	size_t n = 0;

	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] != '-' && name.ptr[i] != '_')
			word[n++] = (char)tolower((unsigned char)name.ptr[i]);
	word[n] = '\0';
	for (size_t i = 0; i < nitems(harmless_ends); i++)
		if (ends_with(word, harmless_ends[i]))
			return false;
	for (size_t i = 0; i < nitems(secret_names); i++)
		if (strstr(word, secret_names[i]) != NULL)
			return true;
	return has_short_name(name);
}

/*
 * Tells whether token names a secret. Of a path only the last name counts, of
 * an option what follows its hyphens.
 */
static bool
redact_is_name(const struct redact_rules *rules, struct slice token)
{
	const char *slash =
	    token.len > 0 ? memrchr(token.ptr, '/', token.len) : NULL;
	struct slice name = token;

	if (slash != NULL)
		name = (struct slice){ slash + 1,
			(size_t)(token.ptr + token.len - slash - 1) };
	while (name.len > 0 && name.ptr[0] == '-') {
		name.ptr++;
		name.len--;
	}
	name = compared(name);
	return name.len > 0 && (is_built_in_name(name) ||
				   is_among(name, rules->names, rules->nnames));
}

static bool
redact_is_value(const struct redact_rules *rules, struct slice token)
{
	struct slice value = compared(token);

	for (size_t i = 0; i < nitems(secret_values); i++)
		if (environment_matches(slice_of(secret_values[i]), value))
			return true;
	return is_among(value, rules->values, rules->nvalues);
}

/*
 * An option like "-u", which a name and a password follow, separated by a
 * colon.
 */
static bool
redact_is_pair_option(struct slice token)
{
	for (size_t i = 0; i < nitems(pair_options); i++)
		if (slice_equal(token, slice_of(pair_options[i])))
			return true;
	return false;
}

/* --- a text ------------------------------------------------------------- */

#define BLANKS " \t\r\n"
#define QUOTES "\"'`"
/* Characters that end a token; a NUL does not. */
#define ENDS BLANKS QUOTES "\\;&|()<>,{}[]=:@?#"

struct scan {
	const struct redact_rules *rules;
	struct redact_state *state;
	struct buf *out;
	const char *p;
	size_t left;
};

static bool
is_number(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (!isdigit((unsigned char)s.ptr[i]))
			return false;
	return true;
}

/* --- the text ----------------------------------------------------------- */

static bool
is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* Returns the distance to the first of these characters, or to the end. */
static size_t
span(const struct scan *s, size_t from, const char *set)
{
	size_t n = from;

	while (n < s->left && !is_one_of(s->p[n], set))
		n++;
	return n - from;
}

static char
at(const struct scan *s, size_t n)
{
	return n < s->left ? s->p[n] : '\0';
}

/* Appends the next n bytes, or as many of them as there is room for. */
static void
keep(struct scan *s, size_t n)
{
	size_t room = s->out->limit - s->out->len;

	if (n > room) {
		buf_put(s->out, s->p, room);
		s->out->failed = true;
	} else {
		buf_put(s->out, s->p, n);
	}
	s->p += n;
	s->left -= n;
}

static void
drop(struct scan *s, size_t n)
{
	if (n == 0)
		return;
	buf_puts(s->out, REDACTED_MARK);
	s->state->count++;
	s->p += n;
	s->left -= n;
}

static size_t
skip_blanks(const struct scan *s, size_t n)
{
	while (n < s->left && is_one_of(s->p[n], " \t"))
		n++;
	return n;
}

/*
 * Drops up to the closing quote. If a backslash stands before the opening
 * quote, the text ends at the next such quote.
 */
static void
drop_quoted(struct scan *s, bool escaped)
{
	char end[] = { *s->p, '\\', '\0' };
	size_t n;

	keep(s, 1);
	n = span(s, 0, end);
	while (!escaped && at(s, n) == '\\' && end[0] != '\'') {
		n += n + 1 < s->left ? 2 : 1;
		n += span(s, n, end);
	}
	if (escaped || at(s, n) != '\\')
		drop(s, n);
	else
		drop(s, n + span(s, n, (char[]){ end[0], '\0' }));
	if (escaped && at(s, 0) == '\\')
		keep(s, 1);
	if (at(s, 0) == end[0])
		keep(s, 1);
}

/* Drops a secret: quoted, or up to one of the characters in ends. */
static void
drop_value(struct scan *s, const char *ends)
{
	bool escaped = at(s, 0) == '\\' && is_one_of(at(s, 1), QUOTES);

	if (escaped)
		keep(s, 1);
	if (is_one_of(at(s, 0), QUOTES))
		drop_quoted(s, escaped);
	else
		drop(s, span(s, 0, ends));
}

/*
 * Drops the password of an option's "user:password". A number is kept, because
 * then it is a user's and a group's number.
 */
static void
drop_pair(struct scan *s)
{
	size_t colon, end;

	if (is_one_of(at(s, 0), QUOTES))
		keep(s, 1);
	end = span(s, 0, BLANKS QUOTES);
	colon = span(s, 0, ":" BLANKS QUOTES);
	if (colon == end)
		return;
	keep(s, colon + 1);
	end -= colon + 1;
	if (!is_number((struct slice){ s->p, end }))
		drop(s, end);
}

/*
 * Handles "//user:password@host". Without a colon, the text before the @ may be
 * a token; it is dropped only for http.
 */
static void
scan_authority(struct scan *s, bool http)
{
	size_t end, colon;
	const char *sign;

	keep(s, 3);
	end = span(s, 0, BLANKS QUOTES "/?#");
	sign = end > 0 ? memrchr(s->p, '@', end) : NULL;
	if (sign == NULL)
		return;
	end = (size_t)(sign - s->p);
	colon = span(s, 0, ":@");
	if (colon < end && s->p[colon] == ':') {
		keep(s, colon + 1);
		drop(s, end - colon - 1);
	} else if (http) {
		drop(s, end);
	} else {
		keep(s, end);
	}
}

/*
 * Handles what follows a secret's name: "=x", ": x", "\": \"x\"", or a blank
 * after an option.
 */
static void
scan_behind_name(struct scan *s, bool option)
{
	size_t n = at(s, 0) == '\\' ? 1 : 0;

	n += is_one_of(at(s, n), QUOTES);
	n = skip_blanks(s, n > 0 ? n : 0);
	if (at(s, n) == '=' && at(s, n + 1) != '=') {
		keep(s, n + 1);
		drop_value(s, BLANKS QUOTES ";&|()<>,");
	} else if (at(s, n) == ':' && at(s, n + 1) != ':') {
		keep(s, skip_blanks(s, n + 1));
		drop_value(s, QUOTES "\r\n");
	} else if (option && (s->left == 0 || is_one_of(*s->p, BLANKS))) {
		s->state->next = REDACT_VALUE;
	}
}

static void
scan_token(struct scan *s, size_t n)
{
	struct slice token = { s->p, n };
	bool option = token.ptr[0] == '-';

	if (redact_is_value(s->rules, token)) {
		drop(s, n);
		return;
	}
	keep(s, n);
	if (s->left >= 3 && memcmp(s->p, "://", 3) == 0)
		scan_authority(s,
		    token.len >= 4 && strncasecmp(token.ptr, "http", 4) == 0);
	else if (redact_is_name(s->rules, token))
		scan_behind_name(s, option);
	else if (redact_is_pair_option(token))
		s->state->next = REDACT_PAIR;
	else if (token.len == 6 && strncasecmp(token.ptr, "bearer", 6) == 0 &&
		 is_one_of(at(s, 0), BLANKS))
		s->state->next = REDACT_VALUE;
}

/*
 * In "--token --password x" the first option has no value, but the second one
 * has.
 */
static bool
is_secret_option(const struct scan *s)
{
	struct slice token = { s->p, span(s, 0, ENDS) };

	return token.len > 1 && token.ptr[0] == '-' &&
	       redact_is_name(s->rules, token);
}

static void
take_expected(struct scan *s, bool whole)
{
	int next = s->state->next;

	s->state->next = REDACT_NOTHING;
	if (next == REDACT_PAIR)
		drop_pair(s);
	else if (is_secret_option(s))
		scan_token(s, span(s, 0, ENDS));
	else if (whole)
		drop(s, s->left);
	else
		drop_value(s, BLANKS QUOTES ";&|()<>");
}

void
redact_word(struct redact_state *state, const struct redact_rules *rules,
    struct slice word, struct buf *out)
{
	struct scan s = { rules, state, out, word.ptr, word.len };

	if (state->next != REDACT_NOTHING)
		take_expected(&s, true);
	while (s.left > 0 && !out->failed) {
		size_t n = span(&s, 0, ENDS);

		if (state->next != REDACT_NOTHING && !is_one_of(*s.p, BLANKS))
			take_expected(&s, false);
		else if (n > 0)
			scan_token(&s, n);
		else
			keep(&s, 1);
	}
}

/* --- a text for the audit log ------------------------------------------- */

/* Text that clients wrote, for records of fixed size. */

#define MARK	   " [cut "
#define MARK_CHARS (sizeof(MARK "0123456789abcdef]") - 1)

bool
audit_copy(char *to, size_t room, struct slice text)
{
	size_t n = strnlen(text.ptr, text.len);

	if (n >= room)
		n = room - 1;
	memcpy(to, text.ptr, n);
	to[n] = '\0';
	return n < text.len;
}

static bool
ends_like_a_mark(const char *text)
{
	size_t n = strlen(text);

	return n >= MARK_CHARS &&
	       strncmp(text + n - MARK_CHARS, MARK, strlen(MARK)) == 0;
}

/* Returns how much of the first n bytes is whole characters. */
static size_t
whole_characters(const char *text, size_t n)
{
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

void
audit_copy_id(char to[CONTROL_PROCESS_MAX], struct slice id)
{
	size_t most = CONTROL_PROCESS_MAX - 1 - MARK_CHARS, n;

	if (!audit_copy(to, CONTROL_PROCESS_MAX, id) && !ends_like_a_mark(to))
		return;
	n = strlen(to);
	if (n > most)
		n = whole_characters(to, most);
	snprintf(to + n, CONTROL_PROCESS_MAX - n, MARK "%016" PRIx64 "]",
	    siphash_bytes(id.ptr, id.len));
}
