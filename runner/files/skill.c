/* SPDX-License-Identifier: ISC */
/*
 * SKILL.md begins with a line "---", YAML, and another line "---". Much of what
 * is written there by hand is not quite YAML: what has a colon in it, or begins
 * like a list, is read again as if it were quoted.
 */
#include "discover.h"

/* Returns the length of the white space that s begins with; 0: none. */
static size_t
span_space(const char *s, size_t len)
{
	static const char *const wide[] = { "\xc2\x85", "\xc2\xa0",
		"\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
		"\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
		"\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a",
		"\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
		"\xe3\x80\x80" };

	if (len > 0 && (*s == ' ' || (*s >= '\t' && *s <= '\r')))
		return 1;
	for (size_t i = 0; i < nitems(wide); i++) {
		size_t n = strlen(wide[i]);

		if (len >= n && memcmp(s, wide[i], n) == 0)
			return n;
	}
	return 0;
}

static struct slice
trim_front(struct slice s)
{
	size_t n;

	while ((n = span_space(s.ptr, s.len)) > 0)
		s = (struct slice){ s.ptr + n, s.len - n };
	return s;
}

static struct slice
trim(struct slice s)
{
	size_t end = 0;

	s = trim_front(s);
	for (size_t i = 0; i < s.len;) {
		size_t n = span_space(s.ptr + i, s.len - i);

		i += n > 0 ? n : 1;
		if (n == 0)
			end = i;
	}
	return (struct slice){ s.ptr, end };
}

/*
 * Returns the words with one blank between them. The caller owns the result.
 */
static char *
skill_single_line(struct slice s)
{
	struct buf b;
	char *line;

	s = trim(s);
	buf_init(&b, s.len + 1);
	while (s.len > 0) {
		size_t n = span_space(s.ptr, s.len);

		if (n == 0)
			buf_put(&b, s.ptr++, 1), s.len--;
		else
			buf_puts(&b, " "), s = trim_front(s);
	}
	line = xstrndup((const char *)b.data, b.len);
	buf_clear(&b);
	return line;
}

size_t
skill_characters(const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* --- Lines -------------------------------------------------------------- */

static bool
take_line(struct slice *rest, struct slice *line)
{
	const char *end;

	if (rest->len == 0)
		return false;
	end = memchr(rest->ptr, '\n', rest->len);
	line->ptr = rest->ptr;
	line->len = end != NULL ? (size_t)(end - rest->ptr) : rest->len;
	rest->ptr += line->len + (end != NULL);
	rest->len -= line->len + (end != NULL);
	if (end != NULL && line->len > 0 && line->ptr[line->len - 1] == '\r')
		line->len--;
	return true;
}

static bool
is_fence(struct slice line)
{
	return slice_equal(trim(line), SLICE("---"));
}

static void
put_line(struct buf *b, struct slice line)
{
	buf_put(b, line.ptr, line.len);
	buf_puts(b, "\n");
}

/* Returns false if there is none. */
static bool
take_front_matter(struct slice text, struct buf *b)
{
	struct slice line;

	if (!take_line(&text, &line) || !is_fence(line))
		return false;
	while (take_line(&text, &line)) {
		if (is_fence(line))
			return b->len > 0;
		put_line(b, line);
	}
	return false;
}

/* --- What is not quite YAML --------------------------------------------- */

struct repair {
	struct buf text;
	bool changed;
	bool in_block; /* of text, below a line with this indentation */
	size_t indent;
};

static size_t
indentation(struct slice line)
{
	size_t n = 0;

	while (n < line.len && line.ptr[n] == ' ')
		n++;
	return n;
}

static bool
begins_like(struct slice s, const char *set)
{
	return s.len > 0 && *s.ptr != '\0' && strchr(set, *s.ptr) != NULL;
}

/* The length without a comment, which has white space before it. */
static size_t
without_comment(struct slice s)
{
	size_t end = 0, space = 1;

	for (size_t i = 0; i < s.len;) {
		if (s.ptr[i] == '#' && space > 0)
			return end;
		space = span_space(s.ptr + i, s.len - i);
		i += space > 0 ? space : 1;
		if (space == 0)
			end = i;
	}
	return end;
}

static bool
has_colon(struct slice s)
{
	for (size_t i = 0; i + 1 < s.len; i++)
		if (s.ptr[i] == ':' &&
		    span_space(s.ptr + i + 1, s.len - i - 1) > 0)
			return true;
	return false;
}

static bool
is_yaml(struct slice s)
{
	struct yaml_doc doc;
	bool is = yaml_parse(&doc, s.ptr, s.len) == 0;

	yaml_clear(&doc);
	return is;
}

static void
put_quoted(struct buf *b, struct slice s)
{
	buf_puts(b, "'");
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '\'')
			buf_puts(b, "'");
		buf_put(b, s.ptr + i, 1);
	}
	buf_puts(b, "'");
}

/* The value behind the colon at `colon`, as it would be with quotes. */
static void
repair_value(struct repair *r, struct slice line, size_t colon)
{
	struct slice behind = { line.ptr + colon + 1, line.len - colon - 1 };
	struct slice value = trim_front(behind), rest = value;

	value.len = without_comment(value);
	rest.ptr += value.len;
	rest.len -= value.len;
	r->in_block = begins_like(value, "|>");
	r->indent = indentation(line);
	if (value.len == 0 || begins_like(value, "|>'\"") ||
	    (!has_colon(value) &&
		(!begins_like(value, "[{@`") || is_yaml(value)))) {
		put_line(&r->text, line);
		return;
	}
	buf_put(&r->text, line.ptr, (size_t)(value.ptr - line.ptr));
	put_quoted(&r->text, value);
	put_line(&r->text, rest);
	r->changed = true;
}

static void
repair_line(struct repair *r, struct slice line)
{
	const char *colon = memchr(line.ptr, ':', line.len);
	size_t at = colon != NULL ? (size_t)(colon - line.ptr) : 0;
	bool inside = r->in_block &&
		      (trim(line).len == 0 || indentation(line) > r->indent);

	if (!inside)
		r->in_block = false;
	if (inside || colon == NULL ||
	    trim((struct slice){ line.ptr, at }).len == 0 ||
	    (at + 1 < line.len &&
		span_space(colon + 1, line.len - at - 1) == 0))
		put_line(&r->text, line);
	else
		repair_value(r, line, at);
}

static void
repair_lines(struct repair *r, struct slice text)
{
	struct slice line;

	buf_init(&r->text, text.len * 3 + 16);
	while (take_line(&text, &line))
		repair_line(r, line);
}

/* --- The members -------------------------------------------------------- */

/* Only the first error is kept. */
static void __attribute__((format(printf, 2, 3)))
fail(char error[SKILL_ERROR_MAX], const char *fmt, ...)
{
	va_list ap;

	if (error[0] != '\0')
		return;
	va_start(ap, fmt);
	vsnprintf(error, SKILL_ERROR_MAX, fmt, ap);
	va_end(ap);
}

/* Returns a member, or NULL. A member that is there twice is an error. */
static const struct yaml_value *
get(char *error, const struct yaml_value *mapping, const char *key)
{
	bool again = false;
	const struct yaml_value *v = yaml_get(mapping, key, &again);

	if (again)
		fail(error, "duplicate field `%s`", key);
	return v;
}

/*
 * Returns the string as a single line, which the caller owns. NULL: there is
 * none, or it is empty, or it is no string, which is an error.
 */
static char *
get_line(char *error, const struct yaml_value *mapping, const char *key)
{
	const struct yaml_value *v = get(error, mapping, key);
	char *line;

	if (v == NULL || yaml_is_null(v))
		return NULL;
	if (v->type != YAML_SCALAR || memchr(v->text.ptr, 0, v->text.len)) {
		fail(error, "`%s` is no string", key);
		return NULL;
	}
	line = skill_single_line(v->text);
	if (line[0] != '\0')
		return line;
	free(line);
	return NULL;
}

static void
take_members(struct skill_text *s, const struct yaml_value *root)
{
	const struct yaml_value *v;

	if (root == NULL || !yaml_is_mapping(root)) {
		fail(s->error, "the front matter is no mapping");
		return;
	}
	s->name = get_line(s->error, root, "name");
	s->description = get_line(s->error, root, "description");
	v = get(s->error, root, "metadata");
	if (v != NULL && !yaml_is_mapping(v))
		fail(s->error, "`metadata` is no mapping");
	else if (v != NULL)
		s->short_description =
		    get_line(s->error, v, "short-description");
}

static bool
parse_members(struct skill_text *s, const struct buf *b)
{
	struct yaml_doc doc;

	if (yaml_parse(&doc, (const char *)b->data, b->len) < 0)
		/* The line "---" is the first. */
		fail(s->error, "line %u, column %u: %s", doc.line + 1,
		    doc.column, doc.error);
	else
		take_members(s, doc.root);
	yaml_clear(&doc);
	return s->error[0] == '\0';
}

static void
check_members(struct skill_text *s, const char *directory)
{
	struct slice named = { directory, strlen(directory) };

	if (s->name == NULL) {
		s->name = skill_single_line(named);
		if (s->name[0] == '\0') {
			free(s->name);
			s->name = xstrdup("skill");
		}
	}
	if (skill_characters(s->name) > SKILL_NAME_MAX)
		fail(s->error, "the name has over %d characters",
		    SKILL_NAME_MAX);
	else if (s->description == NULL)
		fail(s->error, "missing field `description`");
}

/* An error of the text as it is says more than one of the text with quotes. */
static bool
parse_repaired(struct skill_text *s, const struct buf *front)
{
	struct skill_text again = { 0 };
	struct repair r = { 0 };
	bool good;

	repair_lines(
	    &r, (struct slice){ (const char *)front->data, front->len });
	good = r.changed && parse_members(&again, &r.text);
	if (good) {
		skill_text_clear(s);
		*s = again;
	} else {
		skill_text_clear(&again);
	}
	buf_clear(&r.text);
	return good;
}

int
skill_text_parse(
    struct skill_text *s, const char *text, size_t len, const char *directory)
{
	struct buf front;

	*s = (struct skill_text){ 0 };
	buf_init(&front, len + 1);
	if (!take_front_matter((struct slice){ text, len }, &front))
		fail(s->error, "no front matter between lines of `---`");
	else if (parse_members(s, &front) || parse_repaired(s, &front))
		check_members(s, directory);
	buf_clear(&front);
	return s->error[0] != '\0' ? -EBADMSG : 0;
}

void
skill_text_clear(struct skill_text *s)
{
	free(s->name);
	free(s->description);
	free(s->short_description);
	s->name = s->description = s->short_description = NULL;
}

/* --- agents/openai.yaml ------------------------------------------------- */

/*
 * agents/openai.yaml of a skill: the tools that it needs and who may use it. A
 * member of a wrong type makes the whole file invalid, as for the peer, also
 * where it is not told.
 */

/* Returns a member that is not null, or NULL. */
static const struct yaml_value *
get_some(char *error, const struct yaml_value *mapping, const char *key)
{
	const struct yaml_value *v = get(error, mapping, key);

	return v == NULL || yaml_is_null(v) ? NULL : v;
}

static const struct yaml_value *
get_mapping(char *error, const struct yaml_value *in, const char *key)
{
	const struct yaml_value *v = get_some(error, in, key);

	if (v == NULL || v->type == YAML_MAPPING)
		return v;
	fail(error, "`%s` is no mapping", key);
	return NULL;
}

/* Returns the first element; NULL if the sequence is empty or not there. */
static const struct yaml_value *
get_elements(char *error, const struct yaml_value *in, const char *key)
{
	const struct yaml_value *v = get(error, in, key);

	if (v != NULL && !yaml_is_sequence(v))
		fail(error, "`%s` is no sequence", key);
	return v == NULL || v->type != YAML_SEQUENCE ? NULL : v->first;
}

/* Like get_line(). What is too long for a tool is left out, as by the peer. */
static char *
get_limited(
    char *error, const struct yaml_value *in, const char *key, size_t max)
{
	char *line = get_line(error, in, key);

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
take_port(char *error, const struct yaml_value *tool)
{
	const struct yaml_value *oauth = get_mapping(error, tool, "oauth"),
				*v = NULL, *other;
	long port = -1;

	if (oauth == NULL)
		return -1;
	v = get_some(error, oauth, "callback_port");
	other = get_some(error, oauth, "callbackPort");
	if (v != NULL && other != NULL)
		fail(error, "duplicate field `callback_port`");
	v = v != NULL ? v : other;
	if (v != NULL && (port = port_of(v)) < 0)
		fail(error, "`callback_port` is no number from 0 to 65535");
	return port;
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
write_tool(char *error, struct json_writer *w, const struct yaml_value *t)
{
	_cleanup_free_ char *type =
	    get_limited(error, t, "type", SKILL_TOOL_WORD_MAX);
	_cleanup_free_ char *value =
	    get_limited(error, t, "value", SKILL_TOOL_TEXT_MAX);
	_cleanup_free_ char *description =
	    get_limited(error, t, "description", SKILL_TOOL_TEXT_MAX);
	_cleanup_free_ char *transport =
	    get_limited(error, t, "transport", SKILL_TOOL_WORD_MAX);
	_cleanup_free_ char *command =
	    get_limited(error, t, "command", SKILL_TOOL_TEXT_MAX);
	_cleanup_free_ char *url =
	    get_limited(error, t, "url", SKILL_TOOL_TEXT_MAX);
	long port = take_port(error, t);

	if (type == NULL || value == NULL || error[0] != '\0')
		return false;
	json_begin(w, '{');
	json_key_optional(w, "type", type);
	json_key_optional(w, "value", value);
	json_key_optional(w, "description", description);
	json_key_optional(w, "transport", transport);
	json_key_optional(w, "command", command);
	json_key_optional(w, "url", url);
	write_port(w, port);
	json_end(w, '}');
	return true;
}

/* Without a tool that can be told there are no dependencies. */
static void
write_dependencies(
    char *error, struct json_writer *w, const struct yaml_value *root)
{
	const struct yaml_value *d = get_mapping(error, root, "dependencies");
	struct json_text tools;
	bool any = false;

	json_text_init(&tools, 64u << 20);
	for (const struct yaml_value *t = d ? get_elements(error, d, "tools")
					    : NULL;
	     t != NULL && error[0] == '\0'; t = t->next)
		if (!yaml_is_mapping(t))
			fail(error, "a tool that is no mapping");
		else
			any |= write_tool(error, &tools.w, t);
	json_key(w, "dependencies");
	if (any) {
		json_begin(w, '{');
		json_key_begin(w, "tools", '[');
		json_text_put(w, &tools);
		json_end(w, ']');
		json_end(w, '}');
	} else {
		json_null(w);
	}
	buf_clear(&tools.buf);
}

/* --- Who may use it ----------------------------------------------------- */

static bool
is_text(const struct yaml_value *v, const char *text)
{
	return v->type == YAML_SCALAR && slice_equal(v->text, slice_of(text));
}

static void
write_permission(
    char *error, struct json_writer *w, const struct yaml_value *policy)
{
	static const char key[] = "allow_implicit_invocation";
	const struct yaml_value *v = get_some(error, policy, key);
	static const char *const words[] = { "true", "True", "TRUE", "false",
		"False", "FALSE" };
	size_t i = 0;

	json_key(w, "allowImplicitInvocation");
	if (v == NULL) {
		json_null(w);
		return;
	}
	while (i < nitems(words) && (!v->plain || !is_text(v, words[i])))
		i++;
	if (i == nitems(words))
		fail(error, "`%s` is neither true nor false", key);
	json_bool(w, i < 3);
}

static void
write_product(char *error, struct json_writer *w, const struct yaml_value *v)
{
	static const char *const names[] = { "chatgpt", "CHATGPT", "codex",
		"CODEX", "atlas", "ATLAS" };

	for (size_t i = 0; i < nitems(names); i++)
		if (is_text(v, names[i])) {
			json_cstring(w, names[i & ~1u]);
			return;
		}
	fail(error, "an unknown product");
}

static void
write_policy(char *error, struct json_writer *w, const struct yaml_value *root)
{
	const struct yaml_value *policy = get_mapping(error, root, "policy");

	json_key(w, "policy");
	if (policy == NULL) {
		json_null(w);
		return;
	}
	json_begin(w, '{');
	write_permission(error, w, policy);
	json_key_begin(w, "products", '[');
	for (const struct yaml_value *v =
		 get_elements(error, policy, "products");
	     v != NULL; v = v->next)
		write_product(error, w, v);
	json_end(w, ']');
	json_end(w, '}');
}

/* --- The file ----------------------------------------------------------- */

/* How the skill is shown. The client reads it itself; here it must be valid. */
static void
check_interface(char *error, const struct yaml_value *root)
{
	static const char *const keys[] = { "display_name", "short_description",
		"icon_small", "icon_large", "brand_color", "default_prompt" };
	const struct yaml_value *v = get_mapping(error, root, "interface");

	for (size_t i = 0; v != NULL && i < nitems(keys); i++)
		free(get_line(error, v, keys[i]));
}

void
skill_agents_none(struct json_writer *w)
{
	json_key_optional(w, "dependencies", NULL);
	json_key_optional(w, "policy", NULL);
}

static void
write_members(char *error, struct json_writer *w, const struct yaml_value *root)
{
	if (root == NULL || !yaml_is_mapping(root)) {
		fail(error, "it is no mapping");
		return;
	}
	check_interface(error, root);
	write_dependencies(error, w, root);
	write_policy(error, w, root);
}

int
skill_agents_write(struct json_writer *w, const char *text, size_t len,
    char error[SKILL_ERROR_MAX])
{
	struct json_text out;
	struct yaml_doc doc;

	json_text_init(&out, 64u << 20);
	error[0] = '\0';
	if (yaml_parse(&doc, text, len) < 0)
		fail(error, "line %u, column %u: %s", doc.line, doc.column,
		    doc.error);
	else
		write_members(error, &out.w, doc.root);
	if (error[0] == '\0')
		json_text_put(w, &out);
	else
		skill_agents_none(w);
	yaml_clear(&doc);
	buf_clear(&out.buf);
	return error[0] != '\0' ? -EBADMSG : 0;
}
