/* SPDX-License-Identifier: ISC */
/*
 * The roots of a path map, and paths in both directions.
 */
#include "path_map.h"

#include "windows_path.h"

#define BLANKS	 " \t"
#define PROJECTS "codex-project-roots://"

static int __attribute__((format(printf, 3, 4)))
refuse(char *why, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, PATH_MAP_WHY_MAX, fmt, ap);
	va_end(ap);
	return err;
}

/* The length that an error shows. */
static int
shown(struct slice text)
{
	return (int)(text.len < 200 ? text.len : 200);
}

static struct slice
without_drive(struct slice text)
{
	return (struct slice){ text.ptr + 2, text.len - 2 };
}

/* Checks the whole path of a client. */
static int
check_client(struct slice text, char *why)
{
	const char *fault = windows_path_form_fault(text);
	struct slice rest, name;

	if (text.len > WINDOWS_PATH_MAX_BYTES)
		return refuse(why, -EINVAL,
		    "`%.*s...`: it has %zu bytes, limit is %d", shown(text),
		    text.ptr, text.len, WINDOWS_PATH_MAX_BYTES);
	if (fault != NULL)
		return refuse(
		    why, -EINVAL, "`%.*s`: %s", shown(text), text.ptr, fault);
	for (rest = without_drive(text); windows_path_next(&rest, &name);)
		if ((fault = windows_name_fault(name)) != NULL)
			return refuse(why, -EINVAL,
			    "`%.*s`: the name `%.*s` %s", shown(text), text.ptr,
			    shown(name), name.ptr, fault);
	return 0;
}

/* --- the roots ---------------------------------------------------------- */

/* Makes "C:\work" of "c:/work/". */
static char *
tidy_client(struct slice text, size_t *names)
{
	char *tidy = xmalloc(text.len + 2), *to = tidy;
	struct slice rest = without_drive(text), name;

	*to++ = (char)(*text.ptr & ~0x20);
	*to++ = ':';
	for (*names = 0; windows_path_next(&rest, &name); ++*names) {
		*to++ = '\\';
		memcpy(to, name.ptr, name.len);
		to += name.len;
	}
	*to = '\0';
	return tidy;
}

/* Removes doubled slashes and one at the end. */
static char *
tidy_server(struct slice text)
{
	char *tidy = xmalloc(text.len + 2), *to = tidy;

	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] != '/' || to == tidy || to[-1] != '/')
			*to++ = text.ptr[i];
	if (to > tidy + 1 && to[-1] == '/')
		to--;
	*to = '\0';
	return tidy;
}

static int
check_server(struct slice text, char *why)
{
	size_t n;

	if (text.len == 0 || *text.ptr != '/')
		return refuse(why, -EINVAL, "`%.*s` is not an absolute path",
		    shown(text), text.ptr);
	for (size_t i = 0; i < text.len; i += n + 1) {
		const char *slash = memchr(text.ptr + i, '/', text.len - i);

		n = slash ? (size_t)(slash - text.ptr) - i : text.len - i;
		if (n <= 2 && n > 0 && !memcmp(text.ptr + i, "..", n))
			return refuse(why, -EINVAL,
			    "`%.*s`: `.` and `..` are not permitted",
			    shown(text), text.ptr);
	}
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < ' ')
			return refuse(
			    why, -EINVAL, "a path has a control character");
	while (text.len > 0 && text.ptr[text.len - 1] == '/')
		text.len--;
	/* It would be lost where a map is written and read again. */
	if (text.len > 0 && text.ptr[text.len - 1] == ' ')
		return refuse(why, -EINVAL,
		    "`%.*s`: a blank at the end is not permitted", shown(text),
		    text.ptr);
	return 0;
}

/* Splits at the first equals sign that an absolute path follows. */
static int
split(const char *text, struct slice *client, struct slice *server, char *why)
{
	const char *at = text - 1, *path;

	*client = *server = SLICE("");
	do {
		at = strchr(at + 1, '=');
		if (at == NULL)
			return refuse(why, -EINVAL,
			    "`%.200s` is not CLIENT-PATH = /PATH", text);
		path = at + 1 + strspn(at + 1, BLANKS);
	} while (*path != '/');
	text += strspn(text, BLANKS);
	while (at > text && strchr(BLANKS, at[-1]) != NULL)
		at--;
	*client = (struct slice){ text, (size_t)(at - text) };
	*server = slice_of(path);
	while (server->len > 0 &&
	       strchr(BLANKS, server->ptr[server->len - 1]) != NULL)
		server->len--;
	return 0;
}

/* The bytes of all roots as text. */
static size_t
text_bytes(const struct path_map *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->count; i++)
		n +=
		    strlen(m->roots[i].client) + 4 + strlen(m->roots[i].server);
	return n;
}

/* Every path must have one meaning here and one name there. */
static int
check_root(const struct path_map *m, const struct path_map_root *new, char *why)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct path_map_root *old = &m->roots[i];

		if (windows_name_equal(
			slice_of(old->client), slice_of(new->client)))
			return refuse(why, -EINVAL,
			    "ambiguous: `%.200s` is mapped already, to %.200s",
			    new->client, old->server);
		if (strcmp(old->server, new->server) == 0)
			return refuse(why, -EINVAL,
			    "ambiguous: %.200s is mapped already, as `%.200s`",
			    new->server, old->client);
	}
	if (m->count == PATH_MAP_ROOTS_MAX)
		return refuse(
		    why, -EINVAL, "more than %d roots", PATH_MAP_ROOTS_MAX);
	if (text_bytes(m) + strlen(new->client) + 4 + strlen(new->server) >=
	    PATH_MAP_TEXT_MAX)
		return refuse(why, -EINVAL,
		    "all roots together have more than %d bytes",
		    PATH_MAP_TEXT_MAX - 1);
	return 0;
}

int
path_map_add(struct path_map *m, const char *text, char *why)
{
	struct path_map_root root;
	struct slice client, server;
	int err = split(text, &client, &server, why);

	if (err == 0)
		err = check_client(client, why);
	if (err == 0)
		err = check_server(server, why);
	if (err < 0)
		return err;
	root.client = tidy_client(client, &root.names);
	root.server = tidy_server(server);
	err = check_root(m, &root, why);
	if (err == 0) {
		m->roots[m->count++] = root;
		return 0;
	}
	free(root.client);
	free(root.server);
	return err;
}

int
path_map_read(struct path_map *m, const char *text, char *why)
{
	_cleanup_free_ char *copy = xstrdup(text);
	char *line = copy;
	int err = 0;

	while (err == 0 && *line != '\0') {
		size_t n = strcspn(line, "\n");
		bool last = line[n] == '\0';

		line[n] = '\0';
		if (n > 0)
			err = path_map_add(m, line, why);
		line += last ? n : n + 1;
	}
	return err;
}

void
path_map_write(const struct path_map *m, struct buf *b)
{
	for (size_t i = 0; i < m->count; i++) {
		buf_puts(b, m->roots[i].client);
		buf_puts(b, " = ");
		buf_puts(b, m->roots[i].server);
		buf_puts(b, "\n");
	}
}

void
path_map_clear(struct path_map *m)
{
	while (m->count > 0) {
		m->count--;
		free(m->roots[m->count].client);
		free(m->roots[m->count].server);
	}
}

/* --- the map of this process -------------------------------------------- */

static struct path_map used;

int
path_map_use(const char *text, char *why)
{
	int err;

	path_map_clear(&used);
	err = path_map_read(&used, text, why);
	if (err < 0)
		path_map_clear(&used);
	return err;
}

const struct path_map *
path_map_used(void)
{
	return used.count > 0 ? &used : NULL;
}

/* --- in ----------------------------------------------------------------- */

/* Compares the drives and then name by name, until one of the two ends. Returns
 * false at a difference; *text is then undefined. Otherwise *rest is what the
 * text has more, and *more what the root has more. */
static bool
run_beside(const struct path_map_root *root, struct slice text,
    struct slice *rest, struct slice *more)
{
	struct slice a = without_drive(text), b = slice_of(root->client);
	struct slice x, y;

	if (!windows_name_equal(
		(struct slice){ text.ptr, 1 }, (struct slice){ b.ptr, 1 }))
		return false;
	b = without_drive(b);
	for (;;) {
		bool in_root;

		*rest = a;
		*more = b;
		in_root = windows_path_next(&b, &y);
		if (!in_root || !windows_path_next(&a, &x))
			return true;
		if (!windows_name_equal(x, y))
			return false;
	}
}

/* Returns the longest root that the text lies in, with what the text has more,
 * or NULL. *above tells whether a root lies below the text. */
static const struct path_map_root *
find_root(const struct path_map *m, struct slice text, struct slice *rest,
    bool *above)
{
	const struct path_map_root *best = NULL;
	struct slice after, more, name;

	*above = false;
	*rest = text;
	for (size_t i = 0; i < m->count; i++) {
		const struct path_map_root *root = &m->roots[i];

		if (!run_beside(root, text, &after, &more))
			continue;
		if (windows_path_next(&more, &name)) {
			*above = true;
		} else if (best == NULL || root->names > best->names) {
			best = root;
			*rest = after;
		}
	}
	return best;
}

size_t
path_map_room(const struct path_map *m, size_t len)
{
	size_t longest = 0;

	for (size_t i = 0; i < m->count; i++)
		if (strlen(m->roots[i].server) > longest)
			longest = strlen(m->roots[i].server);
	/* A pattern quotes each byte of a root. */
	return 2 * longest + len + 2;
}

static int
refuse_outside(struct slice text, bool above, char *why)
{
	return refuse(why, above ? -EXDEV : -ENOENT,
	    above ? "`%.*s` lies above a root of path-map"
		  : "`%.*s` lies under no root of path-map",
	    shown(text), text.ptr);
}

/* Writes what the root and the rest of a client's path are here. */
static void
put_here(char *out, const struct path_map_root *root, struct slice rest)
{
	size_t n = strlen(root->server);
	char *to = out + n;
	struct slice name;

	memcpy(out, root->server, n + 1);
	if (to == out + 1)
		to = out;
	while (windows_path_next(&rest, &name)) {
		*to++ = '/';
		memcpy(to, name.ptr, name.len);
		to += name.len;
	}
	if (to == out)
		*to++ = '/';
	*to = '\0';
}

/* Tells whether a root below the text leads to another place than below
 * `here`. */
static bool
leads_elsewhere(const struct path_map *m, struct slice text, const char *here)
{
	struct slice rest, more, name;

	for (size_t i = 0; i < m->count; i++)
		if (run_beside(&m->roots[i], text, &rest, &more) &&
		    windows_path_next(&more, &name) &&
		    !path_lies_in(m->roots[i].server, here))
			return true;
	return false;
}

int
path_map_in(const struct path_map *m, struct slice text, char *out,
    bool *elsewhere, char *why)
{
	const struct path_map_root *root;
	int err = check_client(text, why);
	struct slice rest;
	bool above;

	*elsewhere = false;
	if (err < 0)
		return err;
	root = find_root(m, text, &rest, &above);
	if (root == NULL)
		return refuse_outside(text, above, why);
	put_here(out, root, rest);
	*elsewhere = above && leads_elsewhere(m, text, out);
	return 0;
}

/* --- patterns ----------------------------------------------------------- */

/* Returns the beginning of the pattern that has no special character in it, cut
 * between two names. */
static struct slice
fixed_part(struct slice text)
{
	size_t end = 0;

	for (size_t i = 0; i <= text.len; i++) {
		if (i == text.len || windows_is_separator(text.ptr[i]))
			end = i;
		if (i < text.len && strchr("*?[]{}", text.ptr[i]) != NULL)
			break;
	}
	return (struct slice){ text.ptr, end < 2 ? 2 : end };
}

/* Copies with slashes for backslashes. */
static void
copy_pattern(char *to, struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		*to++ = (char)(text.ptr[i] == '\\' ? '/' : text.ptr[i]);
	*to = '\0';
}

/* Copies a root so that each of its bytes stands for itself. */
static char *
quote(char *to, const char *server)
{
	for (; *server != '\0'; server++) {
		if (strchr("\\*?[]{},", *server) != NULL)
			*to++ = '\\';
		*to++ = *server;
	}
	return to;
}

static bool
has_dots(struct slice text)
{
	struct slice name;

	while (windows_path_next(&text, &name))
		if (name.len == 2 && memcmp(name.ptr, "..", 2) == 0)
			return true;
	return false;
}

/* A pattern that has no drive letter in front may have none elsewhere. */
static int
rewrite_pattern(struct slice text, char *out, char *why)
{
	size_t n = strlen(PROJECTS);

	if (text.len < n || memcmp(text.ptr, PROJECTS, n) != 0)
		n = 0;
	if (memchr(text.ptr + n, ':', text.len - n) != NULL)
		return refuse(why, -EINVAL,
		    "`%.*s`: a colon stands only behind a drive letter in "
		    "front",
		    shown(text), text.ptr);
	copy_pattern(out, text);
	return 0;
}

int
path_map_pattern(
    const struct path_map *m, struct slice text, char *out, char *why)
{
	const struct path_map_root *root;
	struct slice fixed, rest;
	bool above;
	char *to;
	int err;

	if (!windows_path_begins(text))
		return rewrite_pattern(text, out, why);
	if (windows_path_form_fault(text) != NULL)
		return check_client(text, why);
	fixed = fixed_part(text);
	err = check_client(fixed, why);
	if (err < 0)
		return err;
	if (has_dots(without_drive(text)) ||
	    memchr(text.ptr + 2, ':', text.len - 2) != NULL)
		return refuse(why, -EINVAL,
		    "`%.*s`: `..` and a second colon are not permitted",
		    shown(text), text.ptr);
	root = find_root(m, fixed, &rest, &above);
	/* No pattern of this machine matches in a directory and in a root that
	 * the client has below it. */
	if (root == NULL || above)
		return refuse_outside(text, above, why);
	to = strcmp(root->server, "/") == 0 ? out : quote(out, root->server);
	rest.len = (size_t)(text.ptr + text.len - rest.ptr);
	if (rest.len > 0 && !windows_is_separator(*rest.ptr))
		*to++ = '/';
	if (to == out && rest.len == 0)
		*to++ = '/';
	copy_pattern(to, rest);
	return 0;
}

/* --- out ---------------------------------------------------------------- */

/* Appends the root and what lies below it. Returns false if the client cannot
 * have one of the names. */
static bool
put_below(struct buf *b, const struct path_map_root *root, const char *rest)
{
	size_t from = b->len;

	for (const char *s = root->client; *s != '\0'; s++)
		buf_put_u8(b, (uint8_t)(*s == '\\' ? '/' : *s));
	while (*(rest += strspn(rest, "/")) != '\0') {
		struct slice name = { rest, strcspn(rest, "/") };

		if (windows_name_fault(name) != NULL)
			return false;
		buf_put_u8(b, '/');
		buf_put(b, name.ptr, name.len);
		rest += name.len;
	}
	if (root->names == 0 && b->len == from + 2)
		buf_put_u8(b, '/');
	return !b->failed && b->len - from <= WINDOWS_PATH_MAX_BYTES;
}

/* Appends the path by this root, if the client's path leads back to it. */
static bool
put_by(const struct path_map *m, const struct path_map_root *root,
    const char *path, struct buf *b)
{
	size_t from = b->len;
	size_t n = strcmp(root->server, "/") == 0 ? 0 : strlen(root->server);
	struct slice rest, text;
	bool above;

	if (put_below(b, root, path + n)) {
		text = (struct slice){ (const char *)b->data + from,
			b->len - from };
		if (find_root(m, text, &rest, &above) == root)
			return true;
	}
	b->len = from;
	return false;
}

bool
path_map_out(const struct path_map *m, const char *path, struct buf *b)
{
	size_t below = SIZE_MAX;

	/* From the longest root to the shortest. No two are equal. */
	for (;;) {
		const struct path_map_root *best = NULL;
		size_t longest = 0;

		for (size_t i = 0; i < m->count; i++) {
			size_t n = strlen(m->roots[i].server);

			if (n > longest && n < below &&
			    path_lies_in(path, m->roots[i].server)) {
				best = &m->roots[i];
				longest = n;
			}
		}
		if (best == NULL)
			return false;
		if (put_by(m, best, path, b))
			return true;
		below = longest;
	}
}
