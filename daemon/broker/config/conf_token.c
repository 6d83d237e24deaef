/* SPDX-License-Identifier: ISC */
/*
 * [token NAME] of execd.conf(5): a bearer token that has a name, and that may
 * expire. Such a section is in the file, or alone in a file of its own in the
 * directory `tokens' beside it, which `execd ctl token' writes. A file of its
 * own that is wrong is told and left out: it locks nobody out but its owner.
 */
#include <dirent.h>

#include "base.h"
#include "conf.h"

/* Of the directory. Root's execd holds a copy of each file. */
#define FILES_MAX 512

/* --- the section -------------------------------------------------------- */

bool
conf_read_time(const char *text, int64_t *at)
{
	struct tm tm = { 0 };
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

	*at = timegm(&tm);
	return end != NULL && *end == '\0';
}

void
conf_write_time(char text[CONF_TIME_CHARS], int64_t at)
{
	time_t time = at;
	struct tm tm;

	if (gmtime_r(&time, &tm) == NULL)
		tm = (struct tm){ .tm_mday = 1 };
	strftime(text, CONF_TIME_CHARS, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static int
parse_time(const struct conf_type *t, void *at, const char *text, char *why)
{
	return conf_read_time(text, at)
		   ? 0
		   : conf_refuse(why,
			 "`%.100s` is no time like 2027-01-31T12:00:00Z", text);
}

static void
show_time(const struct conf_type *t, struct buf *b, const void *at)
{
	char text[CONF_TIME_CHARS];

	if (*(const int64_t *)at == 0)
		return;
	conf_write_time(text, *(const int64_t *)at);
	buf_printf(b, "%s\n", text);
}

static const struct conf_type conf_time = { parse_time, show_time };

#define TOKEN_KEY(keyword, type, member)                                       \
	{                                                                      \
		keyword, &type, offsetof(struct named_token, member)           \
	}

static const struct conf_key token_keys[] = {
	TOKEN_KEY("identity", conf_string, identity),
	TOKEN_KEY("sha256", conf_digests, digests),
	TOKEN_KEY("expires", conf_time, expires_s),
	TOKEN_KEY("created", conf_time, created_s),
};

struct named_token *
conf_find_token(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->nnamed; i++)
		if (strcmp(c->named[i]->name, name) == 0)
			return c->named[i];
	return NULL;
}

static void *
add_token(struct conf *c, const char *name, char *why)
{
	struct named_token *t;

	if (conf_find_token(c, name) != NULL) {
		snprintf(why, CONF_WHY_MAX, "[token %s] already exists", name);
		return NULL;
	}
	t = xcalloc(1, sizeof(*t));
	t->name = xstrdup(name);
	c->named = xreallocarray(c->named, c->nnamed + 1, sizeof(*c->named));
	return c->named[c->nnamed++] = t;
}

static void *
get_token(const struct conf *c, size_t i)
{
	return i < c->nnamed ? c->named[i] : NULL;
}

static int
check_token(struct conf *c, void *o, char *why)
{
	const struct named_token *t = o;

	if (t->identity == NULL)
		return conf_refuse(why, "identity: is missing");
	return t->digests.count == 1 ? 0
				     : conf_refuse(why,
					   "sha256: the digest of one token is "
					   "needed, and it has %zu",
					   t->digests.count);
}

const struct conf_section conf_token = {
	.name = "token",
	.keys = token_keys,
	.nkeys = nitems(token_keys),
	.add = add_token,
	.object = get_token,
	.check = check_token,
};

/* Forgets the last token. */
static void
drop_token(struct conf *c)
{
	struct named_token *t = c->named[--c->nnamed];

	conf_clear(&conf_token, t);
	free(t->name);
	free(t);
}

void
conf_tokens_clear(struct conf *c)
{
	while (c->nnamed > 0)
		drop_token(c);
	free(c->named);
}

static bool
has_digest(const struct digests *d, const uint8_t *digest)
{
	for (size_t i = 0; i < d->count; i++)
		if (memcmp(d->items[i], digest, sizeof(d->items[i])) == 0)
			return true;
	return false;
}

int
conf_token_check(const struct conf *c, const struct named_token *t, char *why)
{
	const uint8_t *digest = t->digests.items[0];

	const struct identity *id = conf_find_identity(c, t->identity);

	if (id == NULL || id->peer_group != NULL)
		return conf_refuse(why,
		    "[token %s] identity: %s [identity %.100s]", t->name,
		    id == NULL ? "there is no" : "several users are",
		    t->identity);
	for (size_t i = 0; i < c->nidentities; i++)
		if (has_digest(&c->identities[i]->tokens, digest))
			return conf_refuse(why,
			    "[token %s] sha256: [identity %s] has the same",
			    t->name, c->identities[i]->name);
	for (size_t i = 0; i < c->nnamed && c->named[i] != t; i++)
		if (has_digest(&c->named[i]->digests, digest))
			return conf_refuse(why,
			    "[token %s] sha256: [token %s] has the same",
			    t->name, c->named[i]->name);
	return 0;
}

/* --- files -------------------------------------------------------------- */

/* Others are what a write left that was cut off, and copies of editors. */
static int
is_token_file(const struct dirent *entry)
{
	return conf_is_name(entry->d_name) && entry->d_name[0] != '.';
}

static void
read_one(struct conf *c, const char *directory, const char *name)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", directory, name);
	size_t before = c->nnamed;
	char why[CONF_WHY_MAX] = "";
	int err = conf_read_token(c, path, name);

	if (err == 0 && c->nnamed == before)
		err = conf_refuse(why, "there is no [token %s] in it", name);
	else if (err == 0)
		err = conf_token_check(c, c->named[before], why);
	if (err == 0)
		return;
	if (why[0] != '\0')
		log_error(0, "%s: %s", path, why);
	log_error(0, "%s: this token is left out", path);
	while (c->nnamed > before)
		drop_token(c);
}

void
conf_tokens_read(struct conf *c, const char *path)
{
	_cleanup_free_ char *directory = conf_beside(path, "tokens");
	struct dirent **names;
	int n = scandir(directory, &names, is_token_file, alphasort);

	if (n < 0 && errno != ENOENT)
		log_error(
		    -errno, "%s: the tokens in it are left out", directory);
	for (int i = 0; i < n; i++) {
		if (i < FILES_MAX)
			read_one(c, directory, names[i]->d_name);
		else if (i == FILES_MAX)
			log_error(0,
			    "%s: of %d tokens, those from `%s' on are left "
			    "out: %d is the most",
			    directory, n, names[i]->d_name, FILES_MAX);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
}

char *
conf_beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL
		   ? xstrdup(name)
		   : xasprintf("%.*s/%s", (int)(slash - path), path, name);
}
