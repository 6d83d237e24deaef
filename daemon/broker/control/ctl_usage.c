/* SPDX-License-Identifier: ISC */
/*
 * `execd ctl usage' adds up the audit log's file, and the files that it was
 * before it was rotated, by identity. A record is parsed and forgotten, so that
 * the size of the files does not matter. Whoever may not read them is told so
 * by the file system.
 */
#include "ctl_client.h"

#include <dirent.h>
#include <spawn.h>
#include <sys/wait.h>

#include "exit_code.h"

#define LINE_MAX_BYTES	(128u << 10) /* more than audit_log.c writes */
#define IDENTITIES_MAX	4096	     /* the others are one row */
#define FILES_MAX	4096
#define SINCE_DEFAULT_S (24 * 3600)
#define OTHERS		"(others)"

struct usage {
	char name[CONTROL_IDENTITY_MAX]; /* "": nobody knows whose it was */
	uint64_t sessions, commands, cpu_ms, memory_bytes;
	uint64_t refused; /* credentials and sessions */
	uint64_t denied;  /* by a sandbox, or a list of hosts */
};

struct totals {
	struct usage *rows; /* owned */
	size_t n;
	char since[CONF_TIME_CHARS];
	uint64_t files, unreadable, lost;
};

static struct usage *
row_of(struct totals *t, struct slice name)
{
	size_t cap = sizeof(t->rows->name) - 1;
	size_t len = name.len < cap ? name.len : cap;

	for (size_t i = 0; i < t->n; i++)
		if (strncmp(t->rows[i].name, name.ptr, len) == 0 &&
		    t->rows[i].name[len] == '\0')
			return &t->rows[i];
	if (t->n >= IDENTITIES_MAX - 1 && !slice_equal(name, SLICE(OTHERS)))
		return row_of(t, SLICE(OTHERS));
	t->rows = xreallocarray(t->rows, t->n + 1, sizeof(*t->rows));
	t->rows[t->n] = (struct usage){ .sessions = 0 };
	memcpy(t->rows[t->n].name, name.ptr, len);
	return &t->rows[t->n++];
}

static uint64_t
number(const struct json_value *record, const char *key)
{
	const struct json_value *v = json_get(record, key);
	uint64_t n = 0;

	return v != NULL && json_to_u64(v, &n) == 0 ? n : 0;
}

static void
add_exited(struct usage *u, const struct json_value *record)
{
	const struct json_value *denied = json_get(record, "sandboxDenied");
	uint64_t memory = number(record, "maxRssBytes");

	u->cpu_ms += number(record, "userMs") + number(record, "systemMs");
	u->denied += denied != NULL && denied->boolean;
	if (memory > u->memory_bytes)
		u->memory_bytes = memory;
}

static void
add_record(struct totals *t, const struct json_value *record)
{
	const struct json_value *event = json_get(record, "event");
	const struct json_value *who = json_get(record, "identity");
	struct slice name =
	    who != NULL && who->type == JSON_STRING ? who->text : SLICE("");

	if (event == NULL)
		t->unreadable++;
	else if (json_is(event, "records-lost"))
		t->lost += number(record, "lost");
	else if (json_is(event, "session-opened"))
		row_of(t, name)->sessions++;
	else if (json_is(event, "process-started"))
		row_of(t, name)->commands++;
	else if (json_is(event, "process-exited"))
		add_exited(row_of(t, name), record);
	else if (json_is(event, "refused") || json_is(event, "session-refused"))
		row_of(t, name)->refused++;
	else if (json_is(event, "network-denied"))
		row_of(t, name)->denied++;
}

/* --- files ---------------------------------------------------------------- */

/* Each record begins with its time, and times in UTC are in the order of their
 * texts. So what is too old need not be parsed. */
static bool
is_too_old(const struct totals *t, const char *line)
{
	static const char begin[] = "{\"time\":\"";
	size_t n = sizeof(begin) - 1;

	/* The Z is left out: records have milliseconds before it. */
	return strncmp(line, begin, n) == 0 &&
	       strncmp(line + n, t->since, strlen(t->since) - 1) < 0;
}

static void
add_line(struct totals *t, const char *line, size_t len)
{
	struct json_doc doc;

	if (is_too_old(t, line))
		return;
	if (json_parse(&doc, line, len) == 0)
		add_record(t, doc.root);
	else
		t->unreadable++;
	json_clear(&doc);
}

/* A full disk or a loss of power can spoil a line. The next record begins on
 * another one. Returns 0 or -errno. */
static int
add_stream(struct totals *t, FILE *in)
{
	static char line[LINE_MAX_BYTES + 1];
	int c;

	do {
		size_t len = 0;

		while ((c = getc_unlocked(in)) != EOF && c != '\n') {
			if (len < LINE_MAX_BYTES)
				line[len] = (char)c;
			len++;
		}
		if (c == '\n' && len > 0 && len <= LINE_MAX_BYTES) {
			line[len] = '\0';
			add_line(t, line, len);
		} else {
			t->unreadable += len > 0;
		}
	} while (c != EOF);
	return ferror(in) ? -errno : 0;
}

/* Returns the end of a pipe with what gzip(1) makes of the file, or -errno. */
static int
unpack(int fd, pid_t *gzip)
{
	static char name[] = "gzip", how[] = "-dc";
	char *argv[] = { name, how, NULL };
	posix_spawn_file_actions_t actions;
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	err = posix_spawnp(gzip, name, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (err == 0)
		return ends[0];
	close(ends[0]);
	return -err;
}

/* Returns 0 or -errno: -EBADMSG, if gzip(1) could not unpack it. */
static int
add_open_file(struct totals *t, int fd, bool packed)
{
	int from = packed ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int status = 0, err;
	pid_t gzip = -1;
	FILE *in;

	if (packed)
		from = unpack(fd, &gzip);
	if (from < 0)
		return packed ? from : -errno;
	in = fdopen(from, "r");
	err = in != NULL ? add_stream(t, in) : -errno;
	if (in != NULL)
		fclose(in);
	else
		close(from);
	if (packed && (waitpid(gzip, &status, 0) < 0 || status != 0) &&
	    err == 0)
		err = -EBADMSG;
	t->files += err == 0;
	return err;
}

static bool
ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* The last record of a file is its newest. So a file that was last written
 * before the time asked for has none that counts. Returns 0, or an exit code
 * after printing the error. */
static int
add_file(struct totals *t, const char *path, int64_t since_s)
{
	_cleanup_close_ int fd =
	    open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	int err;

	if (fd < 0 || fstat(fd, &st) < 0)
		err = -errno;
	else if (st.st_mtime < since_s)
		return 0;
	else if (!S_ISREG(st.st_mode) || ends_with(path, ".xz") ||
		 ends_with(path, ".zst") || ends_with(path, ".bz2"))
		err = -EOPNOTSUPP;
	else
		err = add_open_file(t, fd, ends_with(path, ".gz"));
	if (err == -EOPNOTSUPP)
		return ctl_fail(
		    path, "neither a plain file nor one of gzip(1)");
	if (err == -EBADMSG)
		return ctl_fail(path, "gzip(1) does not unpack it");
	return err < 0 ? ctl_tell(path, err) : 0;
}

/* Rotated files have names as audit.jsonl.1, audit.jsonl.2.gz and
 * audit.jsonl-20261128. */
static int
add_files(struct totals *t, const char *path, int64_t since_s)
{
	const char *base = strrchr(path, '/');
	_cleanup_free_ char *directory = NULL;
	const struct dirent *e;
	int code = EXIT_STOPPED, failed, n = 0;
	size_t len;
	DIR *dir;

	base = base != NULL ? base + 1 : path;
	len = strlen(base);
	directory = base > path ? xasprintf("%.*s", (int)(base - path), path)
				: xstrdup(".");
	dir = opendir(directory);
	if (dir == NULL)
		return ctl_tell(directory, -errno);
	while ((e = readdir(dir)) != NULL) {
		_cleanup_free_ char *one = NULL;

		if (strncmp(e->d_name, base, len) != 0 ||
		    strchr(".-", e->d_name[len]) == NULL)
			continue;
		if (++n > FILES_MAX)
			break;
		one = xasprintf("%s/%s", directory, e->d_name);
		failed = add_file(t, one, since_s);
		code = failed != 0 ? failed : code;
	}
	closedir(dir);
	if (n > FILES_MAX)
		return ctl_fail(path, "there are more than 4096 such files");
	return n == 0 ? ctl_tell(path, -ENOENT) : code;
}
_Static_assert(FILES_MAX == 4096, "the sentence above");

/* --- output --------------------------------------------------------------- */

static int
by_cpu(const void *a, const void *b)
{
	const struct usage *one = a, *other = b;

	if (one->cpu_ms != other->cpu_ms)
		return one->cpu_ms < other->cpu_ms ? 1 : -1;
	return strcmp(one->name, other->name);
}

static void
put_row(struct json_writer *w, const struct usage *u)
{
	json_begin(w, '{');
	json_key_optional(w, "identity", u->name[0] != '\0' ? u->name : NULL);
	json_key_u64(w, "sessions", u->sessions);
	json_key_u64(w, "commands", u->commands);
	json_key_u64(w, "cpuMs", u->cpu_ms);
	json_key_u64(w, "memoryBytes", u->memory_bytes);
	json_key_u64(w, "refused", u->refused);
	json_key_u64(w, "denied", u->denied);
	json_end(w, '}');
}

static void
print_json(const struct totals *t)
{
	struct json_writer w;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	json_writer_init(&w, &b);
	json_begin(&w, '{');
	json_key_begin(&w, "result", '{');
	json_key_cstring(&w, "since", t->since);
	json_key_begin(&w, "identities", '[');
	for (size_t i = 0; i < t->n; i++)
		put_row(&w, &t->rows[i]);
	json_end(&w, ']');
	json_key_u64(&w, "files", t->files);
	json_key_u64(&w, "unreadable", t->unreadable);
	json_key_u64(&w, "lost", t->lost);
	json_end(&w, '}');
	json_end(&w, '}');
	buf_puts(&b, "\n");
	fwrite(b.data, 1, b.len, stdout);
	buf_clear(&b);
}

static void
print_table(const struct totals *t)
{
	printf("%-20s %9s %9s %12s %9s %8s %7s\n", "IDENTITY", "SESSIONS",
	    "COMMANDS", "CPU", "MEMORY", "REFUSED", "DENIED");
	for (size_t i = 0; i < t->n; i++) {
		const struct usage *u = &t->rows[i];

		ctl_print_column(slice_of(u->name), 20);
		printf("%9llu %9llu %11.2fs %8.1fM %8llu %7llu\n",
		    (unsigned long long)u->sessions,
		    (unsigned long long)u->commands, (double)u->cpu_ms / 1000,
		    (double)u->memory_bytes / (1 << 20),
		    (unsigned long long)u->refused,
		    (unsigned long long)u->denied);
	}
	if (t->unreadable > 0)
		fprintf(stderr, "execd ctl: %llu lines are no records\n",
		    (unsigned long long)t->unreadable);
	if (t->lost > 0)
		fprintf(stderr, "execd ctl: %llu records were lost\n",
		    (unsigned long long)t->lost);
}

/* --- the command ---------------------------------------------------------- */

/* Returns -1 and the path of the running execd's audit log, or an exit code
 * after printing the error. */
static int
find_file(const struct ctl_options *o, char **path)
{
	struct ctl_options status = { .socket = o->socket,
		.command = "status" };
	const struct json_value *v;
	struct ctl_answer a;
	int code = ctl_ask(&status, &a);

	if (code >= 0)
		return code;
	v = a.result ? json_get(a.result, "auditFile") : NULL;
	if (v != NULL && v->type == JSON_STRING)
		*path = xasprintf("%.*s", (int)v->text.len, v->text.ptr);
	if (a.error != NULL)
		code = ctl_print_error(a.error);
	ctl_answer_clear(&a);
	if (*path != NULL || code >= 0)
		return code;
	fputs("execd ctl: this execd keeps no audit log in a file ([audit] "
	      "file); --file PATH names one\n",
	    stderr);
	return EXIT_FAILED;
}

static bool
read_since(const char *text, int64_t *since_s)
{
	int64_t now = time(NULL), span = SINCE_DEFAULT_S;

	if (text != NULL && conf_read_time(text, since_s))
		return true;
	if (text != NULL && !ctl_read_span(text, &span)) {
		fprintf(stderr,
		    "execd ctl: --since %s: neither a time, as "
		    "2027-01-31T12:00:00Z, nor a number with m, h, d or w, as "
		    "24h\n",
		    text);
		return false;
	}
	*since_s = now > span ? now - span : 0;
	return true;
}

int
ctl_usage(const struct ctl_options *o)
{
	_cleanup_free_ char *found = NULL;
	struct totals t = { .n = 0 };
	int64_t since_s;
	int code = -1;

	if (o->words[0] != NULL)
		return ctl_usage_error("unexpected ", o->words[0]);
	if (!read_since(o->since, &since_s))
		return EXIT_USAGE;
	if (o->file == NULL)
		code = find_file(o, &found);
	if (code >= 0)
		return code;
	ctl_show_time(t.since, since_s, "1970-01-01T00:00:00Z");
	code = add_files(&t, o->file != NULL ? o->file : found, since_s);
	if (t.n > 0)
		qsort(t.rows, t.n, sizeof(*t.rows), by_cpu);
	if (o->json)
		print_json(&t);
	else
		print_table(&t);
	free(t.rows);
	return fflush(stdout) == 0 ? code : EXIT_FAILED;
}
