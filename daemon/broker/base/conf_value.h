/* SPDX-License-Identifier: ISC */
/*
 * Values of execd.conf(5): how each kind is read and written. Pure.
 */
#pragma once

#include "base.h"
#include "control.h"

#define CONF_WHY_MAX 512
/* The most of one line, without its end, that libinih has room for. */
#define CONF_LINE_MAX_CHARS 198
#define CONF_VALUES_MAX	    1024 /* of one key */

struct conf_unit;

/* A kind of value. */
struct conf_type {
	/* Stores the value, which is never empty. A list gets one line of the
	 * file at a time. Returns 0, or -EINVAL with why[]. */
	int (*parse)(
	    const struct conf_type *t, void *at, const char *text, char *why);
	/* Appends the value as parse() takes it, or nothing if it is unset. A
	 * list has a line for each entry. */
	void (*show)(const struct conf_type *t, struct buf *b, const void *at);
	void (*clear)(void *at); /* NULL: it owns nothing */
	/* A type whose lines are words is given each of them. */
	int (*word)(
	    const struct conf_type *t, void *at, const char *text, char *why);
	bool list;   /* may continue in indented lines */
	bool secret; /* never logged */

	/* Of a number, and of a choice, which is the number of its word: */
	size_t size;		       /* in memory: 1, 4 or 8 bytes */
	bool may_be_unset;	       /* all bits: nobody has set it */
	const char *fault;	       /* behind a wrong value; NULL: made */
	const struct conf_unit *units; /* NULL: digits alone */
	uint64_t min, max;
	const char *zero;	  /* what 0 is called; NULL: 0 */
	const char *const *words; /* NULL after the last */
};

#define CONF_NUMBER(bytes) conf_parse_number, conf_show_number, .size = (bytes)
#define CONF_CHOICE(type)                                                      \
	conf_parse_choice, conf_show_choice, .size = sizeof(type)

/* What a struct conf_type may name. */
int conf_parse_number(
    const struct conf_type *t, void *at, const char *text, char *why);
void conf_show_number(const struct conf_type *t, struct buf *b, const void *at);
int conf_parse_choice(
    const struct conf_type *t, void *at, const char *text, char *why);
void conf_show_choice(const struct conf_type *t, struct buf *b, const void *at);
int conf_parse_string(
    const struct conf_type *t, void *at, const char *text, char *why);
void conf_show_string(const struct conf_type *t, struct buf *b, const void *at);
void conf_clear_string(void *at);
void conf_show_strings(
    const struct conf_type *t, struct buf *b, const void *at);
void conf_clear_strings(void *at);

/* Returns the number or the choice that is stored at `at'. */
uint64_t conf_number(const struct conf_type *t, const void *at);

/* Strings; they are owned. */
struct strings {
	char **items;
	size_t count;
};

struct digests {
	uint8_t (*items)[32];
	size_t count;
};

#define CONF_MODE_UNSET UINT32_MAX

extern const struct conf_type conf_duration;	      /* uint32_t, ms */
extern const struct conf_type conf_optional_duration; /* 0: "none" */
extern const struct conf_type conf_count;	      /* uint32_t, at least 1 */
extern const struct conf_type conf_optional_count;    /* 0: "none" */
extern const struct conf_type conf_seconds;	      /* uint32_t, at least 0 */
extern const struct conf_type conf_bytes;	      /* uint64_t, at least 1 */
extern const struct conf_type conf_optional_bytes;    /* 0: "none" */
extern const struct conf_type conf_mode;	      /* uint32_t, octal */
extern const struct conf_type conf_bool;	      /* bool: yes, no */
extern const struct conf_type conf_string;	      /* char * */
extern const struct conf_type conf_path;	      /* char *, absolute */
/* struct strings, separated by blanks */
extern const struct conf_type conf_words;
extern const struct conf_type conf_lines;    /* struct strings */
extern const struct conf_type conf_digests;  /* struct digests */
extern const struct conf_type conf_nets;     /* struct nets */
extern const struct conf_type conf_path_map; /* struct path_map */
/* Those that may be unset: of [sandbox], and of control groups. */
extern const struct conf_type sandbox_yes_no, sandbox_count, sandbox_percent,
    sandbox_bytes, memory_limit, sandbox_weight;

/* The unset value of a choice, a count or a size. */
#define SANDBOX_UNSET	    UINT8_MAX
#define SANDBOX_UNSET_COUNT UINT32_MAX
#define SANDBOX_UNSET_BYTES UINT64_MAX

/* Writes why, and returns -EINVAL. */
int conf_refuse(char *why, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends a copy of the item. */
void strings_add(struct strings *s, const char *item);
bool strings_has(const struct strings *s, const char *item);
void strings_clear(struct strings *s);

void digests_add(struct digests *d, const uint8_t digest[32]);

/* Reads 64 hexadecimal digits of either case. Returns 0 or -EINVAL. */
int digest_parse(uint8_t digest[32], const char *hex);
