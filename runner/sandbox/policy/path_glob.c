/* SPDX-License-Identifier: ISC */
/*
 * Patterns of denied paths: braces, components, names (doc/sandbox.md section
 * A6). Syntax and error texts follow the peer's matcher with a literal
 * separator.
 */
#include "resolve_parts.h"

static int
fail(const char **reason, const char *text)
{
	*reason = text;
	return -EINVAL;
}

/*
 * Returns the end of the class that begins at s. NULL: the class is not closed,
 * so the bracket is an ordinary letter.
 */
static const char *
class_end(const char *s, const char *end)
{
	s++;
	if (s < end && (*s == '!' || *s == '^'))
		s++;
	if (s < end && *s == ']')
		s++;
	while (s < end && *s != ']')
		s++;
	return s < end ? s + 1 : NULL;
}

/*
 * Tells whether a range of the class [s, end) holds c. *wrong: a range runs
 * from high to low.
 */
static bool
class_find(const char *s, const char *end, int c, bool *wrong)
{
	bool found = false;

	*wrong = false;
	for (end--; s < end; s++) {
		unsigned char low = (unsigned char)*s, high = low;

		if (end - s >= 3 && s[1] == '-') {
			high = (unsigned char)s[2];
			s += 2;
		}
		*wrong |= low > high;
		found |= c >= low && c <= high;
	}
	return found;
}

static bool
class_matches(const char *s, const char *end, unsigned char c)
{
	bool negated = s[1] == '!' || s[1] == '^', wrong;

	return class_find(s + 1 + negated, end, c, &wrong) != negated;
}

/* Returns the end of the token at s: a class, a quoted byte, or one byte. */
static const char *
token_end(const char *s, const char *end)
{
	const char *closed = *s == '[' ? class_end(s, end) : NULL;

	if (closed != NULL)
		return closed;
	return *s == '\\' && end - s > 1 ? s + 2 : s + 1;
}

/* Tells whether the token at s matches this byte. The token is not a star. */
static bool
token_matches(const char *s, const char *end, unsigned char c)
{
	if (*s == '?')
		return true;
	if (*s == '[' && class_end(s, end) != NULL)
		return class_matches(s, class_end(s, end), c);
	if (*s == '\\' && end - s > 1)
		s++;
	return (unsigned char)*s == c;
}

/* Most names are refused by their last letter. */
static bool
ends_alike(struct slice part, struct slice name)
{
	char last = part.ptr[part.len - 1];

	return memchr("*?]", last, 3) != NULL ||
	       (name.len > 0 && name.ptr[name.len - 1] == last);
}

/*
 * Matches one component with one name. Backtracking to the last star is enough.
 */
static bool
part_matches(struct slice part, const char *name)
{
	const char *s = part.ptr, *end = s + part.len;
	const char *star = NULL, *from = NULL;

	while (*name != '\0' || s < end) {
		if (s < end && *s == '*') {
			star = ++s;
			from = name;
		} else if (s < end && *name != '\0' &&
			   token_matches(s, end, (unsigned char)*name)) {
			s = token_end(s, end);
			name++;
		} else if (star != NULL && *from != '\0') {
			s = star;
			name = ++from;
		} else {
			return false;
		}
	}
	return true;
}

static int
check_part(struct slice part, const char **reason)
{
	const char *s = part.ptr, *end = s + part.len;

	for (; s < end; s = token_end(s, end)) {
		const char *closed = *s == '[' ? class_end(s, end) : NULL;
		bool wrong = false;

		if (closed != NULL)
			class_find(s + 1 + (s[1] == '!' || s[1] == '^'), closed,
			    -1, &wrong);
		if (wrong)
			return fail(reason, "invalid range");
		if (*s == '\\' && s + 1 == end)
			return fail(reason, "dangling '\\'");
	}
	return 0;
}

static bool
is_wild(struct slice part)
{
	const char *s = part.ptr, *end = s + part.len;

	for (; s < end; s = token_end(s, end))
		if (*s == '*' || *s == '?' ||
		    (*s == '[' && class_end(s, end) != NULL))
			return true;
	return false;
}

static bool
is_dots(struct slice part, size_t n)
{
	return part.len == n && memcmp(part.ptr, "..", n) == 0;
}

/* Appends a fixed component to the base and removes its backslashes. */
static void
add_fixed(struct glob *g, struct slice part)
{
	char *to = g->base + strlen(g->base);

	if (to > g->base && to[-1] != '/')
		*to++ = '/';
	for (size_t i = 0; i < part.len; i++) {
		if (part.ptr[i] == '\\' && i + 1 < part.len)
			i++;
		*to++ = part.ptr[i];
	}
	*to = '\0';
}

static int
add_part(struct glob *g, struct slice part, const char **reason)
{
	int err = check_part(part, reason);

	if (err < 0 || part.len == 0 || is_dots(part, 1))
		return err;
	if (g->nparts == 0 && !is_wild(part)) {
		add_fixed(g, part);
		return 0;
	}
	if (is_dots(part, 2))
		return fail(reason, "'..' behind a wildcard");
	if (g->nparts == GLOB_PARTS_MAX)
		return fail(reason, "too many components");
	if (part.len == 2 && memcmp(part.ptr, "**", 2) == 0)
		g->deep |= (uint64_t)1 << g->nparts;
	g->parts[g->nparts++] = part;
	return 0;
}

/* Takes ownership of the text. */
static int
parse_plain(struct glob *g, char *text, const char **reason)
{
	const char *s = text;
	int err = 0;

	*g = (struct glob){ .text = text, .base = xmalloc(strlen(text) + 2) };
	strcpy(g->base, *text == '/' ? "/" : "");
	while (*s != '\0' && err == 0) {
		size_t n = strcspn(s, "/");

		err = add_part(g, (struct slice){ s, n }, reason);
		s += n + (s[n] == '/');
	}
	return err;
}

/*
 * Finds the first opening brace, or the end. *reason is set if a closing brace
 * comes earlier.
 */
static const char *
find_brace(const char *s, const char *end, const char **reason)
{
	for (; s < end && *s != '{'; s = token_end(s, end))
		if (*s == '}')
			*reason = "unopened alternate group";
	return s;
}

/* Returns the comma or brace that ends the alternative at s, or NULL. */
static const char *
alternative_end(const char *s, const char *end)
{
	size_t depth = 0;

	for (; s < end; s = token_end(s, end)) {
		if (depth == 0 && (*s == ',' || *s == '}'))
			return s;
		if (*s == '{')
			depth++;
		else if (*s == '}')
			depth--;
	}
	return NULL;
}

/* A stack of texts that may still contain braces. */
struct texts {
	char *items[GLOB_ALTERNATIVES_MAX];
	size_t count, made;
};

static int
put_text(struct texts *t, char *text, const char **reason)
{
	if (t->count == GLOB_ALTERNATIVES_MAX ||
	    ++t->made > 2 * GLOB_ALTERNATIVES_MAX) {
		free(text);
		return fail(reason, "too many alternatives");
	}
	t->items[t->count++] = text;
	return 0;
}

/* Adds one text for each alternative of the group that opens at `open`. */
static int
put_alternatives(
    struct texts *t, const char *text, const char *open, const char **reason)
{
	const char *end = text + strlen(text), *last = open, *s;

	do {
		last = alternative_end(last + 1, end);
		if (last == NULL)
			return fail(reason, "unclosed alternate group");
	} while (*last == ',');
	for (s = open; s != last;) {
		const char *from = s + 1;

		s = alternative_end(from, end);
		if (put_text(t,
			xasprintf("%.*s%.*s%s", (int)(open - text), text,
			    (int)(s - from), from, last + 1),
			reason) < 0)
			return -EINVAL;
	}
	return 0;
}

static int
add_glob(struct glob_list *out, char *text, const char **reason)
{
	if (out->count == GLOB_ALTERNATIVES_MAX) {
		free(text);
		return fail(reason, "too many alternatives");
	}
	out->globs =
	    xreallocarray(out->globs, out->count + 1, sizeof(*out->globs));
	return parse_plain(&out->globs[out->count++], text, reason);
}

static int
expand(struct texts *t, struct glob_list *out, const char **reason)
{
	char *text = t->items[--t->count];
	const char *open, *wrong = NULL;
	int err;

	open = find_brace(text, text + strlen(text), &wrong);
	if (wrong == NULL && *open == '\0')
		return add_glob(out, text, reason);
	err = wrong != NULL ? fail(reason, wrong)
			    : put_alternatives(t, text, open, reason);
	free(text);
	return err;
}

int
glob_parse(struct glob_list *out, struct slice pattern, const char **reason)
{
	struct texts t = { 0 };
	int err = 0;

	*out = (struct glob_list){ 0 };
	if (pattern.len == 0)
		return fail(reason, "empty");
	if (pattern.len > GLOB_TEXT_MAX)
		return fail(reason, "too long");
	if (memchr(pattern.ptr, '\0', pattern.len) != NULL)
		return fail(reason, "it holds a NUL");
	put_text(&t, xstrndup(pattern.ptr, pattern.len), reason);
	while (t.count > 0 && err == 0)
		err = expand(&t, out, reason);
	while (t.count > 0)
		free(t.items[--t.count]);
	return err;
}

void
glob_list_clear(struct glob_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->globs[i].base);
		free(list->globs[i].text);
	}
	free(list->globs);
	*list = (struct glob_list){ 0 };
}

/* `**` also matches no name at all, except as the last part. */
static uint64_t
close_states(const struct glob *g, uint64_t states)
{
	for (size_t i = 0; i + 1 < g->nparts; i++)
		if (states & g->deep & (uint64_t)1 << i)
			states |= (uint64_t)1 << (i + 1);
	return states;
}

uint64_t
glob_start(const struct glob *g)
{
	return close_states(g, 1);
}

bool
glob_part_matches(const struct glob *g, size_t part, struct slice name)
{
	return ends_alike(g->parts[part], name) &&
	       part_matches(g->parts[part], name.ptr);
}

uint64_t
glob_step(const struct glob *g, uint64_t states, const char *name)
{
	uint64_t next = 0;

	for (size_t i = 0; i < g->nparts; i++) {
		uint64_t bit = (uint64_t)1 << i;

		if (!(states & bit))
			continue;
		if (g->deep & bit)
			next |= i + 1 == g->nparts ? bit | bit << 1 : bit;
		else if (name != NULL && part_matches(g->parts[i], name))
			next |= bit << 1;
	}
	return close_states(g, next);
}

bool
glob_matched(const struct glob *g, uint64_t states)
{
	return (states >> g->nparts & 1) != 0;
}

bool
glob_goes_on(const struct glob *g, uint64_t states)
{
	return (states & (((uint64_t)1 << g->nparts) - 1)) != 0;
}
