/* SPDX-License-Identifier: ISC */
/*
 * Values of execd.conf(5).
 */
#include "conf_value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "path_map.h"
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

#define BLANKS " \t"

/* --- strings ------------------------------------------------------------ */

static int
parse_string(void *at, const char *text, char *why)
{
	free(*(char **)at);
	*(char **)at = xstrdup(text);
	return 0;
}

static int
parse_path(void *at, const char *text, char *why)
{
	if (text[0] != '/')
		return conf_refuse(why, "`%s` is not an absolute path", text);
	return parse_string(at, text, why);
}

static void
show_string(struct buf *b, const void *at)
{
	const char *text = *(char *const *)at;

	if (text != NULL)
		buf_printf(b, "%s\n", text);
}

static void
clear_string(void *at)
{
	free(*(char **)at);
	*(char **)at = NULL;
}

const struct conf_type conf_string = { parse_string, show_string, clear_string,
	false, false };
const struct conf_type conf_path = { parse_path, show_string, clear_string,
	false, false };

void
strings_add(struct strings *s, const char *item)
{
	s->items = xreallocarray(s->items, s->count + 1, sizeof(char *));
	s->items[s->count++] = xstrdup(item);
}

bool
strings_has(const struct strings *s, const char *item)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->items[i], item) == 0)
			return true;
	return false;
}

void
strings_clear(struct strings *s)
{
	while (s->count > 0)
		free(s->items[--s->count]);
	free(s->items);
	s->items = NULL;
}

static int
parse_line(void *at, const char *text, char *why)
{
	struct strings *s = at;

	if (s->count == CONF_VALUES_MAX)
		return conf_refuse(why, "more than %d values", CONF_VALUES_MAX);
	/* On a line of its own it would be taken for a section. */
	if (text[0] == '[' && s->count > 0)
		return conf_refuse(
		    why, "`%s`: only the first value begins with `[`", text);
	strings_add(s, text);
	return 0;
}

/* Calls parse for every word of the line. */
static int
each_word(void *at, const char *text, char *why,
    int (*parse)(void *at, const char *word, char *why))
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *rest = copy, *word;
	int err = 0;

	while (err == 0 && (word = strsep(&rest, BLANKS)) != NULL) {
		if (*word == '#')
			return conf_refuse(why,
			    "`%s`: a comment needs a line of its own", word);
		if (*word != '\0')
			err = parse(at, word, why);
	}
	return err;
}

static int
parse_words(void *at, const char *text, char *why)
{
	return each_word(at, text, why, parse_line);
}

static void
show_strings(struct buf *b, const void *at)
{
	const struct strings *s = at;

	for (size_t i = 0; i < s->count; i++)
		buf_printf(b, "%s\n", s->items[i]);
}

static void
clear_strings(void *at)
{
	strings_clear(at);
}

const struct conf_type conf_words = { parse_words, show_strings, clear_strings,
	true, false };
const struct conf_type conf_lines = { parse_line, show_strings, clear_strings,
	true, false };

/* --- digests ------------------------------------------------------------ */

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int
digest_parse(uint8_t digest[32], const char *hex)
{
	if (strlen(hex) != 64)
		return -EINVAL;
	for (size_t i = 0; i < 32; i++) {
		int high = hex_value(hex[2 * i]);
		int low = hex_value(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		digest[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

void
digests_add(struct digests *d, const uint8_t digest[32])
{
	d->items = xreallocarray(d->items, d->count + 1, sizeof(*d->items));
	memcpy(d->items[d->count++], digest, 32);
}

static int
parse_digest(void *at, const char *word, char *why)
{
	struct digests *d = at;
	uint8_t digest[32];

	if (digest_parse(digest, word) < 0)
		return conf_refuse(why,
		    "`%s` is not a SHA-256 digest of 64 hexadecimal digits",
		    word);
	if (d->count == CONF_VALUES_MAX)
		return conf_refuse(why, "more than %d values", CONF_VALUES_MAX);
	digests_add(d, digest);
	return 0;
}

static int
parse_digests(void *at, const char *text, char *why)
{
	return each_word(at, text, why, parse_digest);
}

static void
show_digests(struct buf *b, const void *at)
{
	const struct digests *d = at;

	for (size_t i = 0; i < d->count; i++) {
		for (size_t j = 0; j < 32; j++)
			buf_printf(b, "%02x", d->items[i][j]);
		buf_puts(b, "\n");
	}
}

static void
clear_digests(void *at)
{
	struct digests *d = at;

	free(d->items);
	*d = (struct digests){ 0 };
}

const struct conf_type conf_digests = { parse_digests, show_digests,
	clear_digests, true, true };

/* --- address ranges ----------------------------------------------------- */

/* An IPv4 address is stored in the form of IPv6: ::ffff:a.b.c.d. */
static int
parse_net_address(uint8_t net[16], const char *text, unsigned *width)
{
	memset(net, 0, 16);
	*width = 128;
	if (inet_pton(AF_INET6, text, net) == 1)
		return 0;
	*width = 32;
	net[10] = net[11] = 0xff;
	return inet_pton(AF_INET, text, net + 12) == 1 ? 0 : -EINVAL;
}

static int
parse_net(void *at, const char *word, char *why)
{
	_cleanup_free_ char *address = xstrdup(word);
	char *slash = strchr(address, '/');
	struct nets *nets = at;
	const char *end = "";
	unsigned width;
	uint64_t bits;
	uint8_t *net;

	if (strcmp(word, "none") == 0)
		return 0;
	if (nets->count == CONTROL_NETS_MAX)
		return conf_refuse(
		    why, "more than %d address ranges", CONTROL_NETS_MAX);
	net = nets->items[nets->count];
	if (slash != NULL)
		*slash++ = '\0';
	if (parse_net_address(net, address, &width) < 0)
		return conf_refuse(why, "`%s` is not an address", address);
	bits = width;
	if (slash != NULL && (conf_digits(slash, &bits, &end) < 0 ||
				 *end != '\0' || bits > width))
		return conf_refuse(
		    why, "`%s` is not a prefix of 0 to %u bits", slash, width);
	net[16] = (uint8_t)(bits + (128 - width));
	nets->count++;
	return 0;
}

static int
parse_nets(void *at, const char *text, char *why)
{
	return each_word(at, text, why, parse_net);
}

static void
show_nets(struct buf *b, const void *at)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct nets *nets = at;
	char text[INET6_ADDRSTRLEN];

	for (uint32_t i = 0; i < nets->count; i++) {
		const uint8_t *net = nets->items[i];
		bool v4 = net[16] >= 96 && !memcmp(net, mapped, 12);

		inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? net + 12 : net, text,
		    sizeof(text));
		buf_printf(b, "%s/%u\n", text, net[16] - (v4 ? 96u : 0u));
	}
	if (nets->count == 0)
		buf_puts(b, "none\n");
}

static void
clear_nets(void *at)
{
	((struct nets *)at)->count = 0;
}

const struct conf_type conf_nets = { parse_nets, show_nets, clear_nets, true,
	false };

/* --- roots of a path map ------------------------------------------------ */

_Static_assert(CONF_WHY_MAX >= PATH_MAP_WHY_MAX, "an error fits");

static int
parse_path_map(void *at, const char *text, char *why)
{
	return path_map_add(at, text, why);
}

static void
show_path_map(struct buf *b, const void *at)
{
	path_map_write(at, b);
}

static void
clear_path_map(void *at)
{
	path_map_clear(at);
}

const struct conf_type conf_path_map = { parse_path_map, show_path_map,
	clear_path_map, true, false };
