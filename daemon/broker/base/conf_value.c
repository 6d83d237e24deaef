/* SPDX-License-Identifier: ISC */
/*
 * Values of execd.conf(5): numbers.
 */
#include "conf_value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

int
conf_refuse(char *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, CONF_WHY_MAX, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Reads digits and finds what follows them. Returns 0, -EINVAL or -ERANGE. */
int
conf_digits(const char *text, uint64_t *n, const char **end)
{
	char *after;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoull(text, &after, 10);
	*end = after;
	return errno ? -ERANGE : 0;
}

/* --- numbers with units ------------------------------------------------- */

struct unit {
	const char *name;
	uint64_t factor;
};

/* The largest unit comes first: a value is shown in the largest one
 * that fits. */
static const struct unit time_units[] = {
	{ "h", 3600000 },
	{ "m", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
};

static const struct unit byte_units[] = {
	{ "G", 1u << 30 },
	{ "M", 1u << 20 },
	{ "K", 1u << 10 },
	{ "", 1 },
};

static int
parse_units(const char *text, const struct unit *units, size_t nunits,
    uint64_t max, uint64_t *value)
{
	const char *end;
	uint64_t n;

	if (conf_digits(text, &n, &end) < 0)
		return -EINVAL;
	for (size_t i = 0; i < nunits; i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (n > max / units[i].factor)
			return -ERANGE;
		*value = n * units[i].factor;
		return 0;
	}
	return -EINVAL;
}

static void
show_units(
    struct buf *b, const struct unit *units, size_t nunits, uint64_t value)
{
	for (size_t i = 0; i < nunits; i++) {
		if (value % units[i].factor != 0)
			continue;
		buf_printf(b, "%llu%s\n",
		    (unsigned long long)(value / units[i].factor),
		    units[i].name);
		return;
	}
}

static int
parse_duration(void *at, const char *text, char *why)
{
	uint32_t *ms = at;
	uint64_t n;

	if (parse_units(text, time_units, nitems(time_units), UINT32_MAX, &n) <
	    0)
		return conf_refuse(why,
		    "`%s` is not a duration like 500ms, 80s, 2m or 1h", text);
	*ms = (uint32_t)n;
	return 0;
}

static void
show_duration(struct buf *b, const void *at)
{
	const uint32_t *ms = at;

	if (*ms == 0)
		buf_puts(b, "0s\n");
	else
		show_units(b, time_units, nitems(time_units), *ms);
}

const struct conf_type conf_duration = { parse_duration, show_duration, NULL,
	false, false };

static int
parse_optional_duration(void *at, const char *text, char *why)
{
	if (strcmp(text, "none") != 0)
		return parse_duration(at, text, why);
	*(uint32_t *)at = 0;
	return 0;
}

static void
show_optional_duration(struct buf *b, const void *at)
{
	if (*(const uint32_t *)at == 0)
		buf_puts(b, "none\n");
	else
		show_duration(b, at);
}

const struct conf_type conf_optional_duration = { parse_optional_duration,
	show_optional_duration, NULL, false, false };

static int
parse_bytes(void *at, const char *text, char *why)
{
	uint64_t *bytes = at;
	uint64_t n;

	if (parse_units(text, byte_units, nitems(byte_units), INT64_MAX, &n) <
		0 ||
	    n == 0)
		return conf_refuse(why,
		    "`%s` is not a number of bytes like 4096, 64K, 16M or 1G",
		    text);
	*bytes = n;
	return 0;
}

static void
show_bytes(struct buf *b, const void *at)
{
	show_units(b, byte_units, nitems(byte_units), *(const uint64_t *)at);
}

const struct conf_type conf_bytes = { parse_bytes, show_bytes, NULL, false,
	false };

static int
parse_optional_bytes(void *at, const char *text, char *why)
{
	if (strcmp(text, "none") != 0)
		return parse_bytes(at, text, why);
	*(uint64_t *)at = 0;
	return 0;
}

static void
show_optional_bytes(struct buf *b, const void *at)
{
	if (*(const uint64_t *)at == 0)
		buf_puts(b, "none\n");
	else
		show_bytes(b, at);
}

const struct conf_type conf_optional_bytes = { parse_optional_bytes,
	show_optional_bytes, NULL, false, false };

/* --- plain numbers ------------------------------------------------------ */

static int
parse_number(void *at, const char *text, uint32_t min, char *why)
{
	const char *end;
	uint64_t n;

	if (conf_digits(text, &n, &end) < 0 || *end != '\0' || n < min ||
	    n > UINT32_MAX)
		return conf_refuse(why, "`%s` is not a number from %u to %u",
		    text, min, UINT32_MAX);
	*(uint32_t *)at = (uint32_t)n;
	return 0;
}

static int
parse_count(void *at, const char *text, char *why)
{
	return parse_number(at, text, 1, why);
}

static int
parse_optional_count(void *at, const char *text, char *why)
{
	if (strcmp(text, "none") != 0)
		return parse_number(at, text, 1, why);
	*(uint32_t *)at = 0;
	return 0;
}

/* A share is of one processor, so more than 100% is more than one. */
#define PERCENT_MAX 1000000

static int
parse_optional_percent(void *at, const char *text, char *why)
{
	const char *end;
	uint64_t n = 0;

	if (strcmp(text, "none") != 0 &&
	    (conf_digits(text, &n, &end) < 0 || strcmp(end, "%") != 0 ||
		n == 0 || n > PERCENT_MAX))
		return conf_refuse(why,
		    "`%s` is neither none nor a share from 1%% to %d%%", text,
		    PERCENT_MAX);
	*(uint32_t *)at = (uint32_t)n;
	return 0;
}

static int
parse_seconds(void *at, const char *text, char *why)
{
	return parse_number(at, text, 0, why);
}

static void
show_number(struct buf *b, const void *at)
{
	buf_printf(b, "%u\n", *(const uint32_t *)at);
}

static void
show_optional_count(struct buf *b, const void *at)
{
	if (*(const uint32_t *)at == 0)
		buf_puts(b, "none\n");
	else
		show_number(b, at);
}

static void
show_optional_percent(struct buf *b, const void *at)
{
	if (*(const uint32_t *)at == 0)
		buf_puts(b, "none\n");
	else
		buf_printf(b, "%u%%\n", *(const uint32_t *)at);
}

const struct conf_type conf_optional_percent = { parse_optional_percent,
	show_optional_percent, NULL, false, false };
const struct conf_type conf_count = { parse_count, show_number, NULL, false,
	false };
const struct conf_type conf_optional_count = { parse_optional_count,
	show_optional_count, NULL, false, false };
const struct conf_type conf_seconds = { parse_seconds, show_number, NULL, false,
	false };

static int
parse_mode(void *at, const char *text, char *why)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (text[0] < '0' || text[0] > '7' || *end != '\0' || mode > 0777)
		return conf_refuse(
		    why, "`%s` is not an octal mode like 0660", text);
	*(uint32_t *)at = (uint32_t)mode;
	return 0;
}

static void
show_mode(struct buf *b, const void *at)
{
	if (*(const uint32_t *)at != CONF_MODE_UNSET)
		buf_printf(b, "%04o\n", *(const uint32_t *)at);
}

const struct conf_type conf_mode = { parse_mode, show_mode, NULL, false,
	false };

static int
parse_bool(void *at, const char *text, char *why)
{
	bool yes = strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "no") != 0)
		return conf_refuse(why, "`%s` is neither yes nor no", text);
	*(bool *)at = yes;
	return 0;
}

static void
show_bool(struct buf *b, const void *at)
{
	buf_puts(b, *(const bool *)at ? "yes\n" : "no\n");
}

const struct conf_type conf_bool = { parse_bool, show_bool, NULL, false,
	false };
