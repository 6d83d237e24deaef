/* SPDX-License-Identifier: ISC */
/*
 * Named servers: the file of environments, and the variables that name a
 * server. The file is changed by rename(2), so nobody ever reads a partial one.
 */
#include <ini.h>

#include "base.h"
#include "buf.h"
#include "execd-client.h"
#include "nearest.h"

/* bytes */
#define TOKEN_FILE_MAX 16384
#define FILE_MAX       (1u << 20)

/* --- The file ----------------------------------------------------------- */

/* The caller frees the path. NULL: there is neither EXECD_ENVIRONMENTS nor an
 * absolute XDG_CONFIG_HOME or HOME. */
static char *
file_path(void)
{
	const char *file = getenv("EXECD_ENVIRONMENTS");
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	if (file != NULL && file[0] != '\0')
		return xstrdup(file);
	if (config != NULL && config[0] == '/')
		return xasprintf("%s/execd/environments.conf", config);
	if (home != NULL && home[0] == '/')
		return xasprintf("%s/.config/execd/environments.conf", home);
	return NULL;
}

/* The state of the parser's callback. */
struct reader {
	const char *path;
	void (*visit)(void *, const struct execd_environment *, bool);
	void *arg;
	struct execd_environment current;
	char *default_name;
	char *error;
};

/* The keys of an environment, in the order in which they are written. While the
 * file is read, `token' is the name of the file that holds it. */
static const struct {
	const char *key;
	size_t offset;
} texts[] = {
	{ "url", offsetof(struct execd_environment, url) },
	{ "token-file", offsetof(struct execd_environment, token) },
	{ "ca", offsetof(struct execd_environment, ca_file) },
	{ "certificate", offsetof(struct execd_environment, certificate_file) },
	{ "certificate-key", offsetof(struct execd_environment, key_file) },
	{ "server-key", offsetof(struct execd_environment, server_key) },
}, durations[] = {
	{ "connect-timeout",
	    offsetof(struct execd_environment, connect_timeout_ms) },
	{ "silence-timeout",
	    offsetof(struct execd_environment, silence_timeout_ms) },
	{ "initialize-timeout",
	    offsetof(struct execd_environment, initialize_timeout_ms) },
};

static char **
text_of(const struct execd_environment *e, size_t i)
{
	return (char **)((uintptr_t)e + texts[i].offset);
}

void
execd_environment_clear(struct execd_environment *e)
{
	free(e->name);
	if (e->token != NULL)
		explicit_bzero(e->token, strlen(e->token));
	for (size_t i = 0; i < nitems(texts); i++)
		free(*text_of(e, i));
	*e = (struct execd_environment){ 0 };
}

static int
parse_duration(const char *text, unsigned int *ms)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || errno != 0)
		return -EINVAL;
	if (strcmp(end, "s") == 0 && n <= 86400)
		n *= 1000;
	else if (strcmp(end, "ms") != 0)
		return -EINVAL;
	if (n == 0 || n > 86400000)
		return -EINVAL;
	*ms = (unsigned int)n;
	return 0;
}

static void
set(char **field, const char *value)
{
	free(*field);
	*field = xstrdup(value);
}

/* Returns 0, -ENOENT for an unknown key, or -EINVAL for a bad value. */
static int
take_key(struct execd_environment *e, const char *key, const char *value)
{
	for (size_t i = 0; i < nitems(texts); i++)
		if (strcmp(key, texts[i].key) == 0) {
			set(text_of(e, i), value);
			return 0;
		}
	for (size_t i = 0; i < nitems(durations); i++)
		if (strcmp(key, durations[i].key) == 0)
			return parse_duration(
			    value, (void *)((char *)e + durations[i].offset));
	return -ENOENT;
}

/* Completes an environment when the next section begins or the file ends. */
static int
finish_section(struct reader *r)
{
	bool is_default = r->default_name != NULL && r->current.name != NULL &&
			  strcmp(r->default_name, r->current.name) == 0;

	if (r->current.name == NULL)
		return 0;
	if (r->current.url == NULL) {
		r->error =
		    xasprintf("environment `%s' has no url", r->current.name);
		return -EINVAL;
	}
	r->visit(r->arg, &r->current, is_default);
	execd_environment_clear(&r->current);
	return 0;
}

/* The parser continues after an error; only the first error is reported. */
static int
take_line(void *arg, const char *section, const char *key, const char *value)
{
	struct reader *r = arg;
	int err;

	if (r->error != NULL)
		return 0;
	if (section[0] == '\0' && strcmp(key, "default") == 0) {
		set(&r->default_name, value);
		return 1;
	}
	if (r->current.name == NULL || strcmp(r->current.name, section) != 0) {
		if (section[0] != '\0' && finish_section(r) < 0)
			return 0;
		set(&r->current.name, section);
	}
	err = section[0] == '\0' ? -ENOENT : take_key(&r->current, key, value);
	if (err == -ENOENT)
		r->error = xasprintf("unknown key `%s'", key);
	else if (err < 0)
		r->error = xasprintf(
		    "%s: `%s' is not a duration like 10s or 500ms", key, value);
	return err == 0;
}

/* Refuses a file that others can write: they could choose where commands go. */
static int
check_file(FILE *f, const char *path, char **error)
{
	struct stat st;

	if (fstat(fileno(f), &st) < 0)
		return -errno;
	if ((st.st_uid == geteuid() || st.st_uid == 0) &&
	    (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
		return 0;
	*error = xasprintf("%s: others can write to it (mode %04o, owner %u)",
	    path, (unsigned int)st.st_mode & 07777, (unsigned int)st.st_uid);
	return -EINVAL;
}

/* Puts the file name and the line number before the message. */
static void
place_error(struct reader *r, int line)
{
	_cleanup_free_ char *what = r->error;

	if (line > 0)
		r->error = xasprintf("%s:%d: %s", r->path, line,
		    what ? what : "neither KEY = VALUE nor [NAME]");
	else
		r->error = xasprintf("%s: %s", r->path, what);
}

static int
parse_file(struct reader *r, FILE *f)
{
	int line = check_file(f, r->path, &r->error);

	if (line < 0)
		return line;
	line = ini_parse_file(f, take_line, r);
	if (line == 0 && finish_section(r) == 0)
		return 0;
	place_error(r, line);
	return -EINVAL;
}

int
execd_environment_each(void (*visit)(void *arg,
			   const struct execd_environment *e, bool is_default),
    void *arg, char **error)
{
	_cleanup_free_ char *path = file_path();
	struct reader r = { .path = path, .visit = visit, .arg = arg };
	FILE *f = path ? fopen(path, "re") : NULL;
	int err = -ENOENT;

	*error = NULL;
	if (path == NULL)
		return 0;
	if (f != NULL) {
		err = parse_file(&r, f);
		fclose(f);
	} else if (errno != ENOENT) {
		err = -errno;
	} else {
		err = 0; /* a missing file counts as empty */
	}
	if (err < 0 && r.error == NULL)
		r.error = xasprintf("%s: %s", path, strerror(-err));
	*error = r.error;
	execd_environment_clear(&r.current);
	free(r.default_name);
	return err;
}

/* --- Finding one -------------------------------------------------------- */

struct search {
	const char *name; /* NULL: the default */
	struct execd_environment found;
	struct nearest nearest;
	char *meant; /* its name; owned */
	char *only;  /* the name of the first one; owned */
	size_t n;    /* how many there are */
};

static char *
copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void
look_at(void *arg, const struct execd_environment *e, bool is_default)
{
	struct search *s = arg;

	if (s->n++ == 0)
		s->only = xstrdup(e->name);
	if (s->name != NULL)
		nearest_try(&s->nearest, e->name);
	if (s->nearest.name == e->name) {
		free(s->meant);
		s->nearest.name = s->meant = xstrdup(e->name);
	}
	if (s->found.url != NULL ||
	    (s->name ? strcmp(e->name, s->name) != 0 : !is_default))
		return;
	s->found = *e;
	s->found.name = xstrdup(e->name);
	for (size_t i = 0; i < nitems(texts); i++)
		*text_of(&s->found, i) = copy(*text_of(e, i));
}

/* Follows ssh's rule for private keys: a token that others can read lets them
 * in. A file that belongs to another user is that user's responsibility; root
 * may have provided it. */
static bool
is_exposed(int fd, struct stat *st)
{
	return fstat(fd, st) == 0 && S_ISREG(st->st_mode) &&
	       st->st_uid == getuid() && (st->st_mode & 077) != 0;
}

int
execd_token_read(const char *path, char **token, char **error)
{
	char text[TOKEN_FILE_MAX + 1];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	int err = n < 0 ? -errno : 0;
	size_t from = 0, len = n < 0 ? 0 : (size_t)n;
	struct stat st;

	*error = NULL;
	while (from < len && (unsigned char)text[from] <= ' ')
		from++;
	while (len > from && (unsigned char)text[len - 1] <= ' ')
		len--;
	if (err < 0)
		*error = xasprintf("token file %s: %s", path, strerror(-err));
	else if (is_exposed(fd, &st))
		*error = xasprintf("token file %s: mode %04o lets others read "
				   "it; chmod 600 it",
		    path, (unsigned int)st.st_mode & 07777);
	else if (n > TOKEN_FILE_MAX)
		*error = xasprintf("token file %s: longer than %d bytes", path,
		    TOKEN_FILE_MAX);
	else if (len == from)
		*error = xasprintf("token file %s: it is empty", path);
	else
		*token = xstrndup(text + from, len - from);
	explicit_bzero(text, sizeof(text));
	return err < 0 ? err : *error ? -EINVAL : 0;
}

static int
from_variable(struct execd_environment *out, char **error)
{
	static const char *const names[] = { "EXECD_URL",
		"CODEX_EXEC_SERVER_URL" };

	for (size_t i = 0; i < nitems(names); i++) {
		const char *url = getenv(names[i]);

		if (url == NULL || url[0] == '\0')
			continue;
		if (strcasecmp(url, "none") == 0) {
			*error = xasprintf(
			    "%s=none: no server is to be used", names[i]);
			return -ECANCELED;
		}
		out->url = xstrdup(url);
		return 0;
	}
	return -ENOENT;
}

/* Where the package's execd lets the members of its group in. */
#define LOCAL_SOCKET "/run/execd/execd.sock"

static int
from_file(const char *name, struct execd_environment *out, char **error)
{
	struct search s = { .name = name, .nearest = { .given = name } };
	_cleanup_free_ char *token_file = NULL, *meant = NULL, *only = NULL;
	int err = execd_environment_each(look_at, &s, error);

	meant = s.meant;
	only = s.only;

	if (err == 0 && name == NULL && s.found.url == NULL &&
	    access(LOCAL_SOCKET, W_OK) == 0)
		s.found.url = copy("unix:" LOCAL_SOCKET);
	if (err == 0 && name == NULL && s.found.url == NULL && s.n == 1)
		return from_file(only, out, error);
	if (err == 0 && s.found.url == NULL) {
		*error =
		    name
			? xasprintf("there is no environment `%s'%s%s%s", name,
			      strchr(name, '=') != NULL
				  ? "; -E sets a variable of the command"
			      : meant != NULL ? "; is `"
					      : "",
			      meant != NULL ? meant : "",
			      meant != NULL ? "' meant?" : "")
			: xasprintf("no server is named: neither by --url or "
				    "--environment, nor by EXECD_URL, nor by a "
				    "default environment; and %s",
			      access(LOCAL_SOCKET, F_OK) == 0
				  ? LOCAL_SOCKET
				  " is for the members of a group"
				  : "there is no " LOCAL_SOCKET);
		err = -ENOENT;
	}
	if (err < 0) {
		execd_environment_clear(&s.found);
		return err;
	}
	*out = s.found;
	token_file = steal_pointer(&out->token);
	if (token_file == NULL)
		return 0;
	return execd_token_read(token_file, &out->token, error);
}

static void
look_at_url(void *arg, const struct execd_environment *e, bool is_default)
{
	struct search *s = arg;

	(void)is_default;
	if (s->found.token == NULL && strcmp(e->url, s->name) == 0)
		s->found.token = copy(e->token);
}

static int
token_of_variable(char **token, char **error)
{
	const char *given = getenv("EXECD_TOKEN");

	if (given == NULL)
		return -ENOENT;
	if (given[0] == '\0') {
		*error = xstrdup("EXECD_TOKEN is set, and empty");
		return -EINVAL;
	}
	*token = xstrdup(given);
	return 0;
}

int
execd_token_for_url(const char *url, char **token, char **error)
{
	struct search s = { .name = url };
	_cleanup_free_ char *file = NULL;
	int err;

	*token = NULL;
	*error = NULL;
	err = token_of_variable(token, error);
	if (err != -ENOENT)
		return err;
	err = execd_environment_each(look_at_url, &s, error);
	file = s.found.token;
	return err < 0 || file == NULL ? err
				       : execd_token_read(file, token, error);
}

int
execd_environment_find(
    const char *name, struct execd_environment *out, char **error)
{
	int err = -ENOENT;

	*out = (struct execd_environment){ 0 };
	*error = NULL;
	if (name == NULL)
		err = from_variable(out, error);
	if (err == 0)
		err = execd_token_for_url(out->url, &out->token, error);
	else if (err == -ENOENT)
		err = from_file(name, out, error);
	if (err == 0 && out->token == NULL) {
		err = token_of_variable(&out->token, error);
		err = err == -ENOENT ? 0 : err;
	}
	if (err < 0)
		execd_environment_clear(out);
	return err;
}

/* --- Adding one --------------------------------------------------------- */

static void
look_for(void *arg, const struct execd_environment *e, bool is_default)
{
	const char **name = arg;

	if (*name != NULL && strcmp(e->name, *name) == 0)
		*name = NULL;
}

static int
check_new(const struct execd_environment *e, char **error)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				      "._-";
	const char *name = e->name;
	int err;

	if (name[0] == '\0' || strlen(name) > 40 ||
	    name[strspn(name, allowed)] != '\0') {
		*error = xasprintf("environment `%s': a name is 1 to 40 "
				   "letters, digits, `.', `_' and `-'",
		    name);
		return -EINVAL;
	}
	err = execd_environment_each(look_for, &name, error);
	if (err == 0 && name == NULL) {
		*error = xasprintf("environment `%s' already exists", e->name);
		err = -EEXIST;
	}
	return err;
}

/* Returns the value in a line that says which is the default, or NULL. */
static const char *
default_of(const char *line)
{
	const char *at = line + 7;

	if (strncmp(line, "default", 7) != 0)
		return NULL;
	at += strspn(at, " \t");
	return *at == '=' || *at == ':' ? at + 1 + strspn(at + 1, " \t") : NULL;
}

/* Copies the old text. Leaves out its default if there will be a new one. */
static int
copy_old(struct buf *b, const char *path, bool drop_default)
{
	FILE *f = fopen(path, "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	if (f == NULL)
		return errno == ENOENT ? 0 : -errno;
	while ((n = getline(&line, &cap, f)) > 0) {
		if (drop_default && default_of(line) != NULL)
			continue;
		buf_put(b, line, (size_t)n);
		if (line[n - 1] != '\n')
			buf_puts(b, "\n");
	}
	fclose(f);
	return b->failed ? -EFBIG : 0;
}

static void
put(struct buf *b, const char *key, const char *value)
{
	if (value == NULL)
		return;
	buf_puts(b, key);
	buf_puts(b, " = ");
	buf_puts(b, value);
	buf_puts(b, "\n");
}

static int
make_directories(const char *path)
{
	_cleanup_free_ char *copy = xstrdup(path);

	for (char *p = copy + 1; *p != '\0'; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

static int
replace_file(const char *path, const struct buf *b)
{
	_cleanup_free_ char *name = xasprintf("%s.XXXXXX", path);
	_cleanup_close_ int fd = mkostemp(name, O_CLOEXEC);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	n = write(fd, b->data, b->len);
	if (n != (ssize_t)b->len)
		err = n < 0 ? -errno : -ENOSPC;
	else if (fsync(fd) < 0 || rename(name, path) < 0)
		err = -errno;
	if (err < 0)
		unlink(name);
	return err;
}

int
execd_environment_add(const struct execd_environment *e, const char *token_file,
    bool make_default, char **error)
{
	_cleanup_free_ char *path = file_path();
	struct execd_environment written = *e;
	struct buf b;
	int err;

	*error = NULL;
	if (path == NULL) {
		*error = xstrdup("neither EXECD_ENVIRONMENTS nor HOME is set");
		return -ENOENT;
	}
	err = check_new(e, error);
	if (err < 0)
		return err;
	buf_init(&b, FILE_MAX);
	if (make_default)
		put(&b, "default", e->name);
	err = copy_old(&b, path, make_default);
	written.token = (char *)(uintptr_t)token_file;
	buf_puts(&b, "\n[");
	buf_puts(&b, e->name);
	buf_puts(&b, "]\n");
	for (size_t i = 0; i < nitems(texts); i++)
		put(&b, texts[i].key, *text_of(&written, i));
	if (err == 0)
		err = make_directories(path);
	if (err == 0)
		err = replace_file(path, &b);
	buf_clear(&b);
	if (err < 0)
		*error = xasprintf("%s: %s", path, strerror(-err));
	return err;
}

/* --- Changing one ------------------------------------------------------- */

/* It says where in the file a line is. As inih reads it, a line that begins
 * with a blank goes on with the key before it. */
struct place {
	const char *name;
	const char *at;	   /* the name in the line; NULL: it is not there */
	bool head, inside; /* before all environments; in this one */
	bool keyed;	   /* there was a key in this section */
	bool found;
};

/* Returns whether the line belongs to the environment: its header, a key of it,
 * or that it is the default. */
static bool
is_part(struct place *p, const char *line)
{
	const char *text = line + strspn(line, " \t\r\n");
	size_t len = strlen(p->name);

	p->at = NULL;
	if (*text == '\0' || *text == '#' || *text == ';')
		return false;
	if (*text == '[' && (text == line || !p->keyed)) {
		p->at = text + 1;
		p->head = p->keyed = false;
	} else {
		p->keyed = true;
		p->at = p->head ? default_of(text) : NULL;
	}
	if (p->at != NULL &&
	    (strncmp(p->at, p->name, len) != 0 ||
		strchr(p->head ? " \t\r\n" : "]", p->at[len]) == NULL))
		p->at = NULL;
	if (!p->keyed)
		p->inside = p->at != NULL;
	p->found |= p->inside;
	return p->inside || p->at != NULL;
}

/* Copies the line as it becomes. If new_name is NULL, the environment goes. */
static void
edit_line(
    struct buf *b, struct place *p, const char *line, const char *new_name)
{
	bool part = is_part(p, line);

	if (p->at != NULL && new_name != NULL) {
		buf_put(b, line, (size_t)(p->at - line));
		buf_puts(b, new_name);
		buf_puts(b, p->at + strlen(p->name));
	} else if (!part || new_name != NULL) {
		buf_puts(b, line);
	} else if (p->at != NULL && b->len > 1 &&
		   memcmp(b->data + b->len - 2, "\n\n", 2) == 0) {
		b->len--; /* the empty line before it goes with it */
	}
}

static int
edit(const char *path, const char *name, const char *new_name)
{
	struct place p = { .name = name, .head = true };
	_cleanup_free_ char *line = NULL;
	FILE *f = fopen(path, "re");
	struct buf b;
	size_t cap = 0;
	int err = 0;

	if (f == NULL)
		return -errno;
	buf_init(&b, FILE_MAX);
	while (getline(&line, &cap, f) > 0)
		edit_line(&b, &p, line, new_name);
	if (ferror(f))
		err = -EIO;
	else if (!p.found)
		err = -ENOENT;
	else
		err = b.failed ? -EFBIG : replace_file(path, &b);
	fclose(f);
	buf_clear(&b);
	return err;
}

/* Nothing is changed in a file that cannot be read as a whole. */
static int
change(const char *name, const char *new_name, char **error)
{
	_cleanup_free_ char *path = file_path();
	const char *wanted = name;
	int err = execd_environment_each(look_for, &wanted, error);

	if (err < 0)
		return err;
	if (wanted != NULL) {
		*error = xasprintf("there is no environment `%s'", name);
		return -ENOENT;
	}
	err = edit(path, name, new_name);
	if (err < 0)
		*error = xasprintf("%s: %s", path, strerror(-err));
	return err;
}

int
execd_environment_remove(const char *name, char **error)
{
	return change(name, NULL, error);
}

int
execd_environment_rename(const char *name, const char *new_name, char **error)
{
	struct execd_environment renamed = { .name =
						 (char *)(uintptr_t)new_name };
	int err = check_new(&renamed, error);

	return err < 0 ? err : change(name, new_name, error);
}

char *
execd_environment_place(const char *name, const char *key)
{
	_cleanup_free_ char *path = file_path(), *line = NULL;
	struct place p = { .name = name, .head = true };
	FILE *f = path ? fopen(path, "re") : NULL;
	size_t cap = 0, len = strlen(key);
	char *found = NULL;

	for (unsigned int n = 1;
	     f != NULL && found == NULL && getline(&line, &cap, f) > 0; n++)
		if (is_part(&p, line) && strncmp(line, key, len) == 0 &&
		    strchr(" \t=:", line[len]) != NULL)
			found = xasprintf("%s:%u", path, n);
	if (f != NULL)
		fclose(f);
	return found;
}
