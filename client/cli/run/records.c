/* SPDX-License-Identifier: ISC */
/*
 * Records of the commands that execctl started.
 */
#include "base.h"
#include "run.h"

#include <dirent.h>

#define RECORD_MAX  65536 /* bytes */
#define COMMAND_MAX 4096  /* bytes kept of each string */
/* Of records that do not say how long their sessions live. */
#define LIVES_MS (24 * 3600 * 1000)
/* A server may notice later than execctl that its client has gone. */
#define NOTICE_MS 120000

/* --- Files -------------------------------------------------------------- */

/* Returns the directory, which is created if necessary. NULL: there is none.
 * The caller frees it. */
static char *
directory(void)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	const char *home = getenv("HOME");
	char *path = NULL;

	if (runtime != NULL && runtime[0] == '/')
		path = xasprintf("%s/execctl", runtime);
	else if (home != NULL && home[0] == '/')
		path = xasprintf("%s/.execctl", home);
	if (path != NULL && mkdir(path, 0700) < 0 && errno != EEXIST) {
		free(path);
		return NULL;
	}
	return path;
}

/* A session's id comes from the server, so it is used only if it is a safe file
 * name. */
static bool
is_name(const char *session)
{
	return session[0] != '.' && session[0] != '\0' &&
	       strchr(session, '/') == NULL && strlen(session) < 128;
}

static char *
record_path(const char *session)
{
	_cleanup_free_ char *dir = is_name(session) ? directory() : NULL;

	return dir ? xasprintf("%s/%s", dir, session) : NULL;
}

static const struct {
	const char *key;
	size_t offset;
} texts[] = {
	{ "session", offsetof(struct record, session) },
	{ "process", offsetof(struct record, process) },
	{ "url", offsetof(struct record, url) },
	{ "environment", offsetof(struct record, environment) },
	{ "command", offsetof(struct record, command) },
	{ "cookie", offsetof(struct record, cookie) },
};

static char **
text_of(const struct record *r, size_t i)
{
	return (char **)((uintptr_t)r + texts[i].offset);
}

static void
put(struct json_writer *w, const char *key, const char *value)
{
	if (value == NULL)
		return;
	json_key_string(w, key, value, strnlen(value, COMMAND_MAX));
}

static int
write_file(const char *path, const struct buf *b)
{
	_cleanup_close_ int fd =
	    open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (write(fd, b->data, b->len) != (ssize_t)b->len)
		return -ENOSPC;
	return 0;
}

int64_t
record_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void
record_write(const struct execctl *ctl, const struct record *r)
{
	_cleanup_free_ char *path = record_path(r->session);
	struct json_text t;
	int err;

	json_text_init(&t, RECORD_MAX);
	json_begin(&t.w, '{');
	for (size_t i = 0; i < nitems(texts); i++)
		put(&t.w, texts[i].key, *text_of(r, i));
	json_key_bool(&t.w, "tty", r->tty);
	json_key_bool(&t.w, "kept", r->kept);
	json_key_bool(&t.w, "ended", r->ended);
	json_key_i64(&t.w, "pid", r->pid);
	json_key_i64(&t.w, "startedMs", r->started_ms);
	json_key_i64(&t.w, "leftMs", record_now_ms());
	json_key_i64(&t.w, "livesMs", r->lives_ms);
	json_end(&t.w, '}');
	err = path ? write_file(path, &t.buf) : -ENOENT;
	if (err < 0)
		execctl_tell(ctl, "session %s could not be recorded: %s",
		    r->session, strerror(-err));
	buf_clear(&t.buf);
}

void
record_remove(const char *session)
{
	_cleanup_free_ char *path = record_path(session);

	if (path != NULL)
		unlink(path);
}

/* --- Reading ------------------------------------------------------------ */

void
record_clear(struct record *r)
{
	for (size_t i = 0; i < nitems(texts); i++)
		free(*text_of(r, i));
	*r = (struct record){ 0 };
}

static char *
take(const struct json_value *v, const char *key)
{
	size_t n;
	const char *s = execd_json_string(json_get(v, key), &n);

	return s ? xstrndup(s, n) : NULL;
}

static int
decode(struct record *r, const char *text, size_t len)
{
	struct json_doc doc;
	int err = json_parse(&doc, text, len);

	*r = (struct record){ 0 };
	if (err == 0) {
		for (size_t i = 0; i < nitems(texts); i++)
			*text_of(r, i) = take(doc.root, texts[i].key);
		r->tty = execd_json_bool(json_get(doc.root, "tty"), false);
		r->kept = execd_json_bool(json_get(doc.root, "kept"), false);
		r->ended = execd_json_bool(json_get(doc.root, "ended"), false);
		r->pid = execd_json_number(json_get(doc.root, "pid"), 0);
		r->started_ms =
		    execd_json_number(json_get(doc.root, "startedMs"), 0);
		r->left_ms = execd_json_number(
		    json_get(doc.root, "leftMs"), r->started_ms);
		r->lives_ms =
		    execd_json_number(json_get(doc.root, "livesMs"), LIVES_MS);
	}
	json_clear(&doc);
	if (r->session != NULL && r->process != NULL && r->url != NULL &&
	    r->command != NULL)
		return 0;
	record_clear(r);
	return -EBADMSG;
}

static int
read_record(struct record *r, int dir, const char *name)
{
	char text[RECORD_MAX];
	_cleanup_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));

	if (n < 0)
		return -errno;
	return decode(r, text, (size_t)n);
}

struct list {
	struct record *records;
	size_t n;
};

static int
compare(const void *a, const void *b)
{
	const struct record *ra = a, *rb = b;

	return (ra->started_ms > rb->started_ms) -
	       (ra->started_ms < rb->started_ms);
}

static int
read_all(struct list *l)
{
	_cleanup_free_ char *path = directory();
	DIR *d = path ? opendir(path) : NULL;
	struct dirent *e;

	*l = (struct list){ 0 };
	if (d == NULL)
		return path ? -errno : 0;
	while ((e = readdir(d)) != NULL) {
		struct record r;

		if (e->d_name[0] == '.' ||
		    read_record(&r, dirfd(d), e->d_name) < 0)
			continue;
		l->records =
		    xreallocarray(l->records, l->n + 1, sizeof(*l->records));
		l->records[l->n++] = r;
	}
	closedir(d);
	if (l->n > 1)
		qsort(l->records, l->n, sizeof(*l->records), compare);
	return 0;
}

static void
list_clear(struct list *l)
{
	for (size_t i = 0; i < l->n; i++)
		record_clear(&l->records[i]);
	free(l->records);
}

int
record_each(void (*visit)(void *arg, const struct record *r), void *arg)
{
	struct list l;
	int err = read_all(&l);

	for (size_t i = 0; i < l.n; i++)
		visit(arg, &l.records[i]);
	list_clear(&l);
	return err;
}

int
record_find(const char *prefix, struct record *out)
{
	struct list l;
	int err = read_all(&l);
	size_t found = 0;

	*out = (struct record){ 0 };
	for (size_t i = 0; err == 0 && i < l.n; i++) {
		if (strncmp(l.records[i].session, prefix, strlen(prefix)) != 0)
			continue;
		if (found++ > 0)
			continue;
		*out = l.records[i];
		l.records[i] = (struct record){ 0 };
	}
	list_clear(&l);
	if (found > 1)
		record_clear(out);
	return err < 0 ? err : found == 0 ? -ENOENT : found > 1 ? -EEXIST : 0;
}

void
record_end(const struct execctl *ctl, const char *session)
{
	struct record r;

	if (execd_client_kept_ms(ctl->client) == 0 ||
	    record_find(session, &r) < 0) {
		record_remove(session);
		return;
	}
	r.ended = true;
	r.pid = 0;
	record_write(ctl, &r);
	record_clear(&r);
}

void
record_missed(const struct execctl *ctl, const struct record *r)
{
	struct record left = *r;

	if (record_attached(r))
		return;
	left.pid = 0;
	if (r->pid != 0) {
		record_write(ctl, &left);
	} else if (record_now_ms() - r->left_ms > r->lives_ms + NOTICE_MS) {
		execctl_say("session %s (%s) is forgotten: nobody came back to "
			    "it for longer than it lives",
		    r->session, r->command);
		record_remove(r->session);
	}
}

int
record_choose_server(struct execctl *ctl, const struct record *r)
{
	_cleanup_free_ char *error = NULL;

	ctl->cookie = r->cookie; /* of that URL alone */
	if (r->environment == NULL) {
		ctl->environment.url = xstrdup(r->url);
		if (execd_token_for_url(
			r->url, &ctl->environment.token, &error) < 0)
			return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
		return 0;
	}
	if (execd_environment_find(r->environment, &ctl->environment, &error) <
	    0)
		return execctl_fail(ctl, EXIT_CTL_USAGE, "%s", error);
	return 0;
}

bool
record_attached(const struct record *r)
{
	char name[64], comm[32] = "";
	_cleanup_close_ int fd = -1;

	if (r->pid <= 0)
		return false;
	/* The pid may belong to another program by now. */
	snprintf(name, sizeof(name), "/proc/%lld/comm", (long long)r->pid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, comm, sizeof(comm) - 1) > 0 &&
	       strncmp(comm, "execctl", 7) == 0;
}
