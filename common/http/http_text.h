/* SPDX-License-Identifier: ISC */
/*
 * The lines and words of an HTTP/1.1 head (RFC 9112), read strictly. Everything
 * that two programs could understand differently is refused: bare LF, folded
 * lines, blanks around names, control characters. Pure.
 */
#pragma once

#include "util.h"

/* Returns true for a token (RFC 9110 section 5.6.2), which is not empty. */
bool http_is_token(struct slice s);

/* Returns true for visible characters of ASCII, at least one. */
bool http_is_visible_ascii(struct slice s);

/* Returns s without its first n bytes. */
struct slice http_drop(struct slice s, size_t n);

/* Returns s without blanks and tabs at both ends. */
struct slice http_trim(struct slice s);

/* Compares header names, schemes and tokens, which ignore case. */
bool http_same_word(struct slice s, struct slice word);

/* Takes the part before the first `end` from *rest, and removes `end`. Without
 * an `end` it takes everything and returns false. */
bool http_split(struct slice *rest, char end, struct slice *part);

/* Tells whether a list with commas contains this word. */
bool http_list_has(struct slice list, struct slice word);

/* Takes one line without its CRLF. Returns 1, 0 if the line is not complete, or
 * -EBADMSG if it ends with a bare LF. */
int http_next_line(struct slice *rest, struct slice *line);

/* Takes one header line and divides it; the value has no blanks around it.
 * Returns as http_next_line(), and -EBADMSG if it is no header. */
int http_next_field(
    struct slice *rest, struct slice *name, struct slice *value);
