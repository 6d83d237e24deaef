/* SPDX-License-Identifier: ISC */
#include "conf_value.h"

#include <arpa/inet.h>

#include "path_map.h"

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
static int
take_digits(const char *text, uint64_t *n, const char **end)
{
	char *after;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	*n = strtoull(text, &after, 10);
	*end = after;
	return errno ? -ERANGE : 0;
}

/* --- numbers and words -------------------------------------------------- */

struct conf_unit {
	const char *name;
	uint64_t factor;
};

/* The largest unit comes first: a value is shown in the largest one
 * that fits. What follows the unit 1 is read only. */
static const struct conf_unit time_units[] = { { "h", 3600000 }, { "m", 60000 },
	{ "s", 1000 }, { "ms", 1 }, { "d", 86400000 }, { NULL, 0 } };
static const struct conf_unit byte_units[] = { { "T", 1ull << 40 },
	{ "G", 1u << 30 }, { "M", 1u << 20 }, { "K", 1u << 10 }, { "", 1 },
	{ "TiB", 1ull << 40 }, { "GiB", 1u << 30 }, { "MiB", 1u << 20 },
	{ "KiB", 1u << 10 }, { NULL, 0 } };
static const struct conf_unit no_units[] = { { "", 1 }, { NULL, 0 } };
static const struct conf_unit percent_units[] = { { "%", 1 }, { NULL, 0 } };

uint64_t
conf_number(const struct conf_type *t, const void *at)
{
	return t->size == sizeof(uint64_t)   ? *(const uint64_t *)at
	       : t->size == sizeof(uint32_t) ? *(const uint32_t *)at
					     : *(const uint8_t *)at;
}

static int
store(const struct conf_type *t, void *at, uint64_t value)
{
	if (t->size == sizeof(uint64_t))
		*(uint64_t *)at = value;
	else if (t->size == sizeof(uint32_t))
		*(uint32_t *)at = (uint32_t)value;
	else
		*(uint8_t *)at = (uint8_t)value;
	return 0;
}

/* A number that nobody set has all its bits. */
static bool
is_unset(const struct conf_type *t, uint64_t value)
{
	return t->may_be_unset && value == UINT64_MAX >> (64 - 8 * t->size);
}

static bool
take_number(const struct conf_type *t, const char *text, uint64_t *value)
{
	const struct conf_unit *u = t->units ? t->units : no_units;
	const char *end;
	uint64_t n;

	if (take_digits(text, &n, &end) < 0)
		return false;
	while (u->name != NULL && strcmp(end, u->name) != 0)
		u++;
	if (u->name == NULL || n > t->max / u->factor)
		return false;
	*value = n * u->factor;
	return *value >= t->min;
}

int
conf_parse_number(
    const struct conf_type *t, void *at, const char *text, char *why)
{
	uint64_t n = 0;

	if (t->zero != NULL && strcmp(text, t->zero) == 0)
		return store(t, at, 0);
	if (take_number(t, text, &n))
		return store(t, at, n);
	if (t->fault != NULL)
		return conf_refuse(why, "`%.100s` %s", text, t->fault);
	return conf_refuse(why, "`%.100s` is not a number from %llu to %llu",
	    text, (unsigned long long)t->min, (unsigned long long)t->max);
}

void
conf_show_number(const struct conf_type *t, struct buf *b, const void *at)
{
	const struct conf_unit *u = t->units ? t->units : no_units;
	uint64_t n = conf_number(t, at);

	if (is_unset(t, n))
		return;
	if (n == 0 && t->zero != NULL) {
		buf_printf(b, "%s\n", t->zero);
		return;
	}
	while (n % u->factor != 0)
		u++;
	buf_printf(b, "%llu%s\n", (unsigned long long)(n / u->factor), u->name);
}

int
conf_parse_choice(
    const struct conf_type *t, void *at, const char *text, char *why)
{
	char list[128] = "";
	size_t len = 0;

	for (size_t i = 0; t->words[i] != NULL; i++) {
		if (strcmp(t->words[i], text) == 0)
			return store(t, at, i);
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
		    i > 0 ? ", " : "", t->words[i]);
	}
	if (t->fault != NULL)
		return conf_refuse(why, "`%.100s` %s", text, t->fault);
	return conf_refuse(why, "`%.100s` is not one of %s", text, list);
}

void
conf_show_choice(const struct conf_type *t, struct buf *b, const void *at)
{
	uint64_t n = conf_number(t, at);

	if (!is_unset(t, n))
		buf_printf(b, "%s\n", t->words[n]);
}

const struct conf_type conf_duration = { CONF_NUMBER(4), .units = time_units,
	.max = UINT32_MAX, .zero = "0s",
	.fault = "is not a duration like 500ms, 80s, 2m or 1h" };
const struct conf_type conf_optional_duration = { CONF_NUMBER(4),
	.units = time_units, .max = UINT32_MAX, .zero = "none",
	.fault = "is not a duration like 500ms, 80s, 2m or 1h" };

#define BYTES                                                                  \
	CONF_NUMBER(8), .units = byte_units, .max = INT64_MAX,                 \
			.fault = "is not a number of bytes like 4096, 64K, "   \
				 "16M or 1G"
#define COUNT CONF_NUMBER(4), .min = 1, .max = UINT32_MAX
/* A share is of one processor, so more than 100% is more than one. */
#define PERCENT                                                                \
	CONF_NUMBER(4), .units = percent_units, .min = 1, .max = 1000000,      \
			.zero = "none",                                        \
			.fault = "is neither none nor a share from 1% to "     \
				 "1000000%"

const struct conf_type conf_bytes = { BYTES, .min = 1 };
const struct conf_type conf_optional_bytes = { BYTES, .min = 1,
	.zero = "none" };
const struct conf_type conf_count = { COUNT };
const struct conf_type conf_optional_count = { COUNT, .zero = "none" };
const struct conf_type conf_seconds = { CONF_NUMBER(4), .max = UINT32_MAX };

const struct conf_type sandbox_bytes = { BYTES, .min = 1, .zero = "none",
	.may_be_unset = true };
/* No program starts in less. */
const struct conf_type memory_limit = { CONF_NUMBER(8), .units = byte_units,
	.min = 1u << 20, .max = INT64_MAX, .zero = "none", .may_be_unset = true,
	.fault = "is not a number of bytes of at least 1M, like 512M or 8G" };
const struct conf_type sandbox_count = { COUNT, .zero = "none",
	.may_be_unset = true };
const struct conf_type sandbox_percent = { PERCENT, .may_be_unset = true };
const struct conf_type sandbox_weight = { CONF_NUMBER(4), .min = 1,
	.max = 10000, .zero = "none", .may_be_unset = true,
	.fault = "is neither none nor a weight from 1 to 10000" };

static const char *const no_yes[] = { "no", "yes", NULL };

const struct conf_type conf_bool = { CONF_CHOICE(bool), .words = no_yes,
	.fault = "is neither yes nor no" };
const struct conf_type sandbox_yes_no = { CONF_CHOICE(uint8_t), .words = no_yes,
	.may_be_unset = true };

static int
parse_mode(const struct conf_type *t, void *at, const char *text, char *why)
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
show_mode(const struct conf_type *t, struct buf *b, const void *at)
{
	if (*(const uint32_t *)at != CONF_MODE_UNSET)
		buf_printf(b, "%04o\n", *(const uint32_t *)at);
}

const struct conf_type conf_mode = { parse_mode, show_mode };

#define BLANKS " \t"

/* --- strings ------------------------------------------------------------ */

int
conf_parse_string(
    const struct conf_type *t, void *at, const char *text, char *why)
{
	free(*(char **)at);
	*(char **)at = xstrdup(text);
	return 0;
}

static int
parse_path(const struct conf_type *t, void *at, const char *text, char *why)
{
	if (text[0] != '/')
		return conf_refuse(why, "`%s` is not an absolute path", text);
	return conf_parse_string(t, at, text, why);
}

void
conf_show_string(const struct conf_type *t, struct buf *b, const void *at)
{
	const char *text = *(char *const *)at;

	if (text != NULL)
		buf_printf(b, "%s\n", text);
}

void
conf_clear_string(void *at)
{
	free(*(char **)at);
	*(char **)at = NULL;
}

const struct conf_type conf_string = { conf_parse_string, conf_show_string,
	conf_clear_string };
const struct conf_type conf_path = { parse_path, conf_show_string,
	conf_clear_string };

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
parse_line(const struct conf_type *t, void *at, const char *text, char *why)
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

static int
parse_words(const struct conf_type *t, void *at, const char *text, char *why)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *rest = copy, *word;
	int err = 0;

	while (err == 0 && (word = strsep(&rest, BLANKS)) != NULL) {
		if (*word == '#')
			return conf_refuse(why,
			    "`%s`: a comment needs a line of its own", word);
		if (*word != '\0')
			err = t->word(t, at, word, why);
	}
	return err;
}

void
conf_show_strings(const struct conf_type *t, struct buf *b, const void *at)
{
	const struct strings *s = at;

	for (size_t i = 0; i < s->count; i++)
		buf_printf(b, "%s\n", s->items[i]);
}

void
conf_clear_strings(void *at)
{
	strings_clear(at);
}

const struct conf_type conf_words = { parse_words, conf_show_strings,
	conf_clear_strings, parse_line, .list = true };
const struct conf_type conf_lines = { parse_line, conf_show_strings,
	conf_clear_strings, .list = true };

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
parse_digest(const struct conf_type *t, void *at, const char *word, char *why)
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

static void
show_digests(const struct conf_type *t, struct buf *b, const void *at)
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

const struct conf_type conf_digests = { parse_words, show_digests,
	clear_digests, parse_digest, .list = true, .secret = true };

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
parse_net(const struct conf_type *t, void *at, const char *word, char *why)
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
	if (slash != NULL && (take_digits(slash, &bits, &end) < 0 ||
				 *end != '\0' || bits > width))
		return conf_refuse(
		    why, "`%s` is not a prefix of 0 to %u bits", slash, width);
	net[16] = (uint8_t)(bits + (128 - width));
	nets->count++;
	return 0;
}

static void
show_nets(const struct conf_type *t, struct buf *b, const void *at)
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

const struct conf_type conf_nets = { parse_words, show_nets, clear_nets,
	parse_net, .list = true };

/* --- roots of a path map ------------------------------------------------ */

_Static_assert(CONF_WHY_MAX >= PATH_MAP_WHY_MAX, "an error fits");

static int
parse_path_map(const struct conf_type *t, void *at, const char *text, char *why)
{
	return path_map_add(at, text, why);
}

static void
show_path_map(const struct conf_type *t, struct buf *b, const void *at)
{
	path_map_write(at, b);
}

static void
clear_path_map(void *at)
{
	path_map_clear(at);
}

const struct conf_type conf_path_map = { parse_path_map, show_path_map,
	clear_path_map, .list = true };
