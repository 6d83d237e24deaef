/* SPDX-License-Identifier: ISC */
#include "network_list.h"

#include "network_rules.h"

#define LETTER_ALLOW  'a'
#define LETTER_DENY   'd'
#define LETTER_REVIEW 'r'

/* The first line, as network_list_read() writes it. */
#define NOTHING_SPECIAL "0000\n"

struct reading {
	struct buf text;
	struct network_rules rules; /* only to look whether they are valid */
	const char *form;	    /* before a message */
	char *error;
};

static int
refuse(const struct reading *r, const char *why)
{
	snprintf(r->error, ARGS_ERROR_MAX, "%s: %.700s", r->form, why);
	return -EINVAL;
}

/* A name that is not ASCII is converted where it is used (proxy_list.h). */
static int
add(struct reading *r, char letter, struct slice pattern)
{
	static const enum network_effect effects[] = {
		[LETTER_ALLOW] = NETWORK_ALLOW,
		[LETTER_DENY] = NETWORK_DENY,
		[LETTER_REVIEW] = NETWORK_REVIEW,
	};
	char why[NETWORK_RULE_ERROR_MAX];
	int err = network_rules_add(
	    &r->rules, effects[(unsigned char)letter], pattern, why);

	if (err < 0 && err != -EILSEQ)
		return refuse(r, why);
	if (memchr(pattern.ptr, '\n', pattern.len) != NULL ||
	    memchr(pattern.ptr, '\0', pattern.len) != NULL)
		return refuse(r, "a pattern has one line and no NUL");
	buf_put(&r->text, &letter, 1);
	buf_put(&r->text, pattern.ptr, pattern.len);
	buf_put(&r->text, "\n", 1);
	return 0;
}

static int
add_list(struct reading *r, char letter, const struct json_value *list)
{
	int err = 0;

	for (const struct json_value *v = list != NULL ? list->first : NULL;
	     v != NULL && err == 0; v = v->next)
		err = add(r, letter, v->text);
	return err;
}

static int
add_domains(struct reading *r, const struct json_value *map)
{
	int err = 0;

	for (const struct json_value *v = map != NULL ? map->first : NULL;
	     v != NULL && err == 0; v = v->next)
		err = add(
		    r, json_is(v, "deny") ? LETTER_DENY : LETTER_ALLOW, v->key);
	return err;
}

static int
read_patterns(struct reading *r, const struct network_params *p)
{
	int err = add_domains(r, p->domains);

	if (err == 0)
		err = add_list(r, LETTER_ALLOW, p->allow);
	if (err == 0)
		err = add_list(r, LETTER_DENY, p->deny);
	if (err == 0)
		err = add_list(r, LETTER_REVIEW, p->review);
	if (err == 0 && r->text.failed)
		err = refuse(r, "the patterns of a list have at most 48 KiB");
	return err;
}

int
network_list_read(
    struct network_list *l, const struct network_params *p, char *error)
{
	struct reading r = { .form = p->own ? "network"
					    : "invalid network proxy config",
		.error = error };
	size_t head;
	int err;

	*l = (struct network_list){ .limited = p->limited,
		.allow_local = p->allow_local,
		.asks = p->asks,
		.transparent = p->transparent,
		.socks = p->socks,
		.ask_ms = p->ask_ms };
	if (!p->enabled)
		return refuse(&r, "executor-local network proxy launch "
				  "requires an enabled proxy");
	if (p->transparent && !p->socks)
		return refuse(&r, "transparent_tcp requires an enabled managed "
				  "SOCKS5 proxy");
	buf_init(&r.text, NETWORK_LIST_MAX);
	buf_printf(&r.text, "%d%d%d%d\n", p->transparent, p->limited,
	    p->allow_local, p->asks);
	head = r.text.len;
	err = read_patterns(&r, p);
	buf_put_u8(&r.text, '\0');
	network_rules_clear(&r.rules);
	if (err == 0) {
		l->text = (char *)r.text.data;
		l->rules =
		    (struct slice){ l->text + head, r.text.len - 1 - head };
	} else {
		buf_clear(&r.text);
	}
	return err;
}

/* Of a line: a letter and a pattern. */
static bool
opens_loopback(const char *line)
{
	static const char *const beginnings[] = { "localhost\n",
		"localhost:", "**.localhost\n", "**.localhost:", "127.", "::1",
		"[::1]" };

	for (size_t i = 0; i < nitems(beginnings); i++)
		if (strncasecmp(
			line + 1, beginnings[i], strlen(beginnings[i])) == 0)
			return *line != LETTER_DENY;
	return false;
}

const char *
network_list_not_through(const struct network_list *l)
{
	/* Those of the peer. */
	if (l->allow_local)
		return "localhost,127.0.0.1,::1,"
		       "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16";
	/* The text ends with a newline and a NUL. */
	for (const char *line = l->rules.ptr; *line != '\0';
	     line = strchr(line, '\n') + 1)
		if (opens_loopback(line))
			return "";
	return "localhost,127.0.0.1,::1";
}

void
network_list_put(struct buf *b, char letter, const char *lines)
{
	while (*lines != '\0') {
		size_t n = strcspn(lines, "\n");

		if (n > 0) {
			buf_put(b, &letter, 1);
			buf_put(b, lines, n);
			buf_put(b, "\n", 1);
		}
		lines += n + (lines[n] == '\n');
	}
}

void
network_list_everything(struct network_list *l, const char *named)
{
	struct buf b;

	buf_init(&b, NETWORK_LIST_MAX);
	buf_puts(&b, NOTHING_SPECIAL);
	network_list_put(&b, LETTER_ALLOW, "*:*");
	network_list_put(&b, LETTER_ALLOW, named);
	buf_put_u8(&b, '\0');
	*l = (struct network_list){ .text = (char *)b.data, .socks = true };
	l->rules = (struct slice){ l->text + strlen(NOTHING_SPECIAL),
		b.len - 1 - strlen(NOTHING_SPECIAL) };
}

bool
network_list_is_transparent(const char *text)
{
	return text != NULL && text[0] == '1';
}

void
network_list_clear(struct network_list *l)
{
	free(l->text);
	*l = (struct network_list){ 0 };
}
