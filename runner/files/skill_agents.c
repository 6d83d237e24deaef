/* SPDX-License-Identifier: ISC */
/*
 * agents/openai.yaml of a skill: the tools that it needs and who may use it. A
 * member of a wrong type makes the whole file invalid, as for the peer, also
 * where it is not told.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "skill.h"
#include "yaml.h"

struct agents {
	char *error;
	bool failed;
};

static void __attribute__((format(printf, 2, 3)))
fail(struct agents *a, const char *fmt, ...)
{
	va_list ap;

	if (a->failed)
		return;
	a->failed = true;
	va_start(ap, fmt);
	vsnprintf(a->error, SKILL_ERROR_MAX, fmt, ap);
	va_end(ap);
}

/* Returns a member, or NULL. A member that is there twice is an error. */
static const struct yaml_value *
get(struct agents *a, const struct yaml_value *mapping, const char *key)
{
	bool again = false;
	const struct yaml_value *v = yaml_get(mapping, key, &again);

	if (again)
		fail(a, "duplicate field `%s`", key);
	return v;
}

/* Returns a member that is not null, or NULL. */
static const struct yaml_value *
get_some(struct agents *a, const struct yaml_value *mapping, const char *key)
{
	const struct yaml_value *v = get(a, mapping, key);

	return v == NULL || yaml_is_null(v) ? NULL : v;
}

static const struct yaml_value *
get_mapping(struct agents *a, const struct yaml_value *in, const char *key)
{
	const struct yaml_value *v = get_some(a, in, key);

	if (v == NULL || v->type == YAML_MAPPING)
		return v;
	fail(a, "`%s` is no mapping", key);
	return NULL;
}

/* Returns the first element; NULL if the sequence is empty or not there. */
static const struct yaml_value *
get_elements(struct agents *a, const struct yaml_value *in, const char *key)
{
	const struct yaml_value *v = get(a, in, key);

	if (v != NULL && !yaml_is_sequence(v))
		fail(a, "`%s` is no sequence", key);
	return v == NULL || v->type != YAML_SEQUENCE ? NULL : v->first;
}

/* Returns a single line; NULL: none. The caller owns it. */
static char *
get_line(struct agents *a, const struct yaml_value *in, const char *key)
{
	bool wrong = false;
	char *line = skill_line(get(a, in, key), &wrong);

	if (wrong)
		fail(a, "`%s` is no string", key);
	return line;
}

/* Like get_line(). What is too long for a tool is left out, as by the peer. */
static char *
get_limited(
    struct agents *a, const struct yaml_value *in, const char *key, size_t max)
{
	char *line = get_line(a, in, key);

	if (line == NULL || skill_characters(line) <= max)
		return line;
	free(line);
	return NULL;
}

/* --- Tools -------------------------------------------------------------- */

/* 0 to 65535: decimal, or with 0x, 0o, 0b. Returns -1 if it is none. */
static long
port_of(const struct yaml_value *v)
{
	static const char prefixes[] = "xob";
	static const int bases[] = { 16, 8, 2 };
	char digits[24], *end, *p = digits;
	const char *found;
	int base = 10;
	long port;

	if (v->type != YAML_SCALAR || !v->plain ||
	    v->text.len >= sizeof(digits))
		return -1;
	memcpy(digits, v->text.ptr, v->text.len);
	digits[v->text.len] = '\0';
	p += *p == '+';
	found = p[0] == '0' && p[1] != '\0' ? strchr(prefixes, p[1]) : NULL;
	if (found != NULL)
		p += 2, base = bases[found - prefixes];
	else if (p[0] == '0' && p[1] != '\0')
		return -1;
	if (*p == '\0' || strspn(p, "0123456789abcdefABCDEF") != strlen(p))
		return -1;
	port = strtol(p, &end, base);
	return *end == '\0' && port <= UINT16_MAX ? port : -1;
}

static long
take_port(struct agents *a, const struct yaml_value *tool)
{
	const struct yaml_value *oauth = get_mapping(a, tool, "oauth"),
				*v = NULL, *other;
	long port = -1;

	if (oauth == NULL)
		return -1;
	v = get_some(a, oauth, "callback_port");
	other = get_some(a, oauth, "callbackPort");
	if (v != NULL && other != NULL)
		fail(a, "duplicate field `callback_port`");
	v = v != NULL ? v : other;
	if (v != NULL && (port = port_of(v)) < 0)
		fail(a, "`callback_port` is no number from 0 to 65535");
	return port;
}

static void
write_line(struct json_writer *w, const char *key, const char *line)
{
	json_key(w, key);
	if (line != NULL)
		json_cstring(w, line);
	else
		json_null(w);
}

static void
write_port(struct json_writer *w, long port)
{
	json_key(w, "oauthCallbackPort");
	if (port >= 0)
		json_i64(w, port);
	else
		json_null(w);
}

/* A tool without type or value is left out, as by the peer. */
static bool
write_tool(struct agents *a, struct json_writer *w, const struct yaml_value *t)
{
	_cleanup_free_ char *type =
	    get_limited(a, t, "type", SKILL_TOOL_WORD_MAX);
	_cleanup_free_ char *value =
	    get_limited(a, t, "value", SKILL_TOOL_TEXT_MAX);
	_cleanup_free_ char *description =
	    get_limited(a, t, "description", SKILL_TOOL_TEXT_MAX);
	_cleanup_free_ char *transport =
	    get_limited(a, t, "transport", SKILL_TOOL_WORD_MAX);
	_cleanup_free_ char *command =
	    get_limited(a, t, "command", SKILL_TOOL_TEXT_MAX);
	_cleanup_free_ char *url =
	    get_limited(a, t, "url", SKILL_TOOL_TEXT_MAX);
	long port = take_port(a, t);

	if (type == NULL || value == NULL || a->failed)
		return false;
	json_begin(w, '{');
	write_line(w, "type", type);
	write_line(w, "value", value);
	write_line(w, "description", description);
	write_line(w, "transport", transport);
	write_line(w, "command", command);
	write_line(w, "url", url);
	write_port(w, port);
	json_end(w, '}');
	return true;
}

/* Without a tool that can be told there are no dependencies. */
static void
write_dependencies(
    struct agents *a, struct json_writer *w, const struct yaml_value *root)
{
	const struct yaml_value *d = get_mapping(a, root, "dependencies");
	struct json_writer tools;
	bool any = false;
	struct buf b;

	buf_init(&b, 64u << 20);
	json_writer_init(&tools, &b);
	for (const struct yaml_value *t = d ? get_elements(a, d, "tools")
					    : NULL;
	     t != NULL && !a->failed; t = t->next)
		if (!yaml_is_mapping(t))
			fail(a, "a tool that is no mapping");
		else
			any |= write_tool(a, &tools, t);
	json_key(w, "dependencies");
	if (any) {
		json_begin(w, '{');
		json_key(w, "tools");
		json_begin(w, '[');
		json_raw(w, (const char *)b.data, b.len);
		json_end(w, ']');
		json_end(w, '}');
	} else {
		json_null(w);
	}
	buf_clear(&b);
}

/* --- Who may use it ----------------------------------------------------- */

static void
write_permission(
    struct agents *a, struct json_writer *w, const struct yaml_value *policy)
{
	static const char key[] = "allow_implicit_invocation";
	const struct yaml_value *v = get_some(a, policy, key);
	static const char *const words[] = { "true", "True", "TRUE", "false",
		"False", "FALSE" };
	size_t i = 0;

	json_key(w, "allowImplicitInvocation");
	if (v == NULL) {
		json_null(w);
		return;
	}
	while (i < nitems(words) &&
	       (v->type != YAML_SCALAR || !v->plain ||
		   !slice_equal(
		       v->text, (struct slice){ words[i], strlen(words[i]) })))
		i++;
	if (i == nitems(words))
		fail(a, "`%s` is neither true nor false", key);
	json_bool(w, i < 3);
}

static void
write_product(
    struct agents *a, struct json_writer *w, const struct yaml_value *v)
{
	static const char *const names[] = { "chatgpt", "CHATGPT", "codex",
		"CODEX", "atlas", "ATLAS" };

	for (size_t i = 0; v->type == YAML_SCALAR && i < nitems(names); i++)
		if (slice_equal(v->text,
			(struct slice){ names[i], strlen(names[i]) })) {
			json_cstring(w, names[i & ~1u]);
			return;
		}
	fail(a, "an unknown product");
}

static void
write_policy(
    struct agents *a, struct json_writer *w, const struct yaml_value *root)
{
	const struct yaml_value *policy = get_mapping(a, root, "policy");

	json_key(w, "policy");
	if (policy == NULL) {
		json_null(w);
		return;
	}
	json_begin(w, '{');
	write_permission(a, w, policy);
	json_key(w, "products");
	json_begin(w, '[');
	for (const struct yaml_value *v = get_elements(a, policy, "products");
	     v != NULL; v = v->next)
		write_product(a, w, v);
	json_end(w, ']');
	json_end(w, '}');
}

/* --- The file ----------------------------------------------------------- */

/* How the skill is shown. The client reads it itself; here it must be valid. */
static void
check_interface(struct agents *a, const struct yaml_value *root)
{
	static const char *const keys[] = { "display_name", "short_description",
		"icon_small", "icon_large", "brand_color", "default_prompt" };
	const struct yaml_value *v = get_mapping(a, root, "interface");

	for (size_t i = 0; v != NULL && i < nitems(keys); i++)
		free(get_line(a, v, keys[i]));
}

static void
write_members(
    struct agents *a, struct json_writer *w, const struct yaml_value *root)
{
	if (root == NULL || !yaml_is_mapping(root)) {
		fail(a, "it is no mapping");
		return;
	}
	check_interface(a, root);
	write_dependencies(a, w, root);
	write_policy(a, w, root);
}

static void
parse_members(
    struct agents *a, struct json_writer *w, const char *text, size_t len)
{
	struct yaml_doc doc;

	if (yaml_parse(&doc, text, len) < 0)
		fail(a, "line %u, column %u: %s", doc.line, doc.column,
		    doc.error);
	else
		write_members(a, w, doc.root);
	yaml_clear(&doc);
}

int
skill_agents_write(struct json_writer *w, const char *text, size_t len,
    char error[SKILL_ERROR_MAX])
{
	struct agents a = { .error = error };
	struct json_writer out;
	struct buf b;

	buf_init(&b, 64u << 20);
	json_writer_init(&out, &b);
	if (text != NULL)
		parse_members(&a, &out, text, len);
	if (text != NULL && !a.failed) {
		json_raw(w, (const char *)b.data, b.len);
	} else {
		write_line(w, "dependencies", NULL);
		write_line(w, "policy", NULL);
	}
	buf_clear(&b);
	return a.failed ? -EBADMSG : 0;
}
