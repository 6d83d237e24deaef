/* SPDX-License-Identifier: ISC */
/*
 * path_map: what goes out means the same when it comes back, whatever the map,
 * and what comes in stays in its root. The input is a map, an empty line and a
 * path, which is taken as a client's, as a URI, as a pattern and as one of this
 * machine.
 */
#include <errno.h>

#include "json_tree.h"
#include "path_map.h"
#include "util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Absolute, and clean as everything that comes out of path_uri.c. */
static bool
is_clean(const char *path)
{
	size_t n = strlen(path);

	return path[0] == '/' && strstr(path, "//") == NULL &&
	       (n == 1 || path[n - 1] != '/') && !has_dot_segment(path);
}

static bool
lies_in_a_root(const struct path_map *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (path_lies_in(path, m->roots[i].server))
			return true;
	return false;
}

/* The client's name of a path leads back to it. */
static void
check_out(const struct path_map *m, const char *path)
{
	char why[PATH_MAP_WHY_MAX];
	bool elsewhere;
	struct buf b;
	char *back;

	buf_init(&b, PATH_MAP_TEXT_MAX + strlen(path));
	if (path_map_out(m, path, &b)) {
		struct slice name = { (const char *)b.data, b.len };

		back = xmalloc(path_map_room(m, b.len));
		assert(path_map_in(m, name, back, &elsewhere, why) == 0);
		assert(strcmp(back, path) == 0);
		free(back);
	} else {
		assert(b.len == 0);
	}
	buf_clear(&b);
}

static void
check_in(const struct path_map *m, struct slice text)
{
	char *out = xmalloc(path_map_room(m, text.len));
	char why[PATH_MAP_WHY_MAX] = "";
	bool elsewhere;
	int err = path_map_in(m, text, out, &elsewhere, why);

	if (err == 0) {
		assert(strlen(out) < path_map_room(m, text.len));
		assert(is_clean(out) && lies_in_a_root(m, out));
		check_out(m, out);
	} else {
		assert(err == -EINVAL || err == -ENOENT || err == -EXDEV);
		assert(why[0] != '\0');
	}
	err = path_map_pattern(m, text, out, why);
	assert(err <= 0);
	if (err == 0)
		assert(strlen(out) < path_map_room(m, text.len));
	free(out);
}

/* The same through the seam, with all forms of a URI. */
static void
check_uri(struct slice text)
{
	struct json_doc doc = { 0 };
	struct path_uri p, again;
	char error[512];
	struct buf b;

	if (path_uri_parse(&p, &doc, text, error, sizeof(error)) == 0 &&
	    !p.foreign) {
		buf_init(&b, path_uri_room(p.path));
		path_uri_write(&b, p.path);
		assert(!b.failed);
		assert(path_uri_parse(&again, &doc,
			   (struct slice){ (const char *)b.data, b.len }, error,
			   sizeof(error)) == 0);
		assert(!again.foreign && strcmp(again.path, p.path) == 0);
		buf_clear(&b);
	}
	json_clear(&doc);
}

static void
check_map(const char *roots, struct slice text)
{
	struct path_map m = { .count = 0 }, same = { .count = 0 };
	_cleanup_free_ char *path = xstrndup(text.ptr, text.len);
	char why[PATH_MAP_WHY_MAX];
	struct buf b;

	buf_init(&b, PATH_MAP_TEXT_MAX);
	if (path_map_read(&m, roots, why) == 0) {
		path_map_write(&m, &b);
		buf_put_u8(&b, '\0');
		assert(!b.failed);
		assert(path_map_read(&same, (char *)b.data, why) == 0);
		assert(same.count == m.count);
		check_in(&m, text);
		if (is_clean(path))
			check_out(&m, path);
		assert(path_map_use(roots, why) == 0);
		check_uri(text);
		assert(path_map_use("", why) == 0 && path_map_used() == NULL);
	}
	buf_clear(&b);
	path_map_clear(&same);
	path_map_clear(&m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_free_ char *copy = xstrndup((const char *)data, len);
	char *end = strstr(copy, "\n\n");

	if (end == NULL)
		return 0;
	*end = '\0';
	check_map(copy, (struct slice){ (const char *)data + (end - copy) + 2,
			    len - (size_t)(end - copy) - 2 });
	return 0;
}
