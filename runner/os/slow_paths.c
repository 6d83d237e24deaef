/* SPDX-License-Identifier: ISC */
/*
 * Which paths may make whoever opens them wait.
 */
#include "slow_paths.h"

#include "buf.h"

/* Of the mount table. */
#define MOUNTINFO_MAX_BYTES (16u << 20)

/* Symbolic links in one path, as in the kernel. */
#define LINKS_MAX 40

/* What the kernel reads of a script. */
#define SCRIPT_LINE_BYTES 256

/* --- the mount table ---------------------------------------------------- */

/* Types as in /proc/self/mountinfo; fuse.sshfs is of type fuse. */
static const char *const slow_types[] = { "9p", "afs", "autofs", "beegfs",
	"ceph", "cifs", "coda", "fuse", "fuseblk", "glusterfs", "gpfs",
	"lustre", "nfs", "nfs4", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf",
	"virtiofs" };

static bool
is_slow_type(const char *type)
{
	size_t len = strcspn(type, ".");

	for (size_t i = 0; i < nitems(slow_types); i++)
		if (strlen(slow_types[i]) == len &&
		    !strncmp(type, slow_types[i], len))
			return true;
	return false;
}

void
slow_mounts_unescape(char *s)
{
	char *to = s;

	while (*s != '\0') {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' &&
		    s[2] <= '7' && s[3] >= '0' && s[3] <= '7') {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
				       (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* Without the file system of "/" nothing works anyway, and no command works in
 * those of the kernel, where systemd has an autofs on every host. */
static bool
is_left_out(const char *point)
{
	return strcmp(point, "/") == 0 || strncmp(point, "/proc/", 6) == 0 ||
	       strncmp(point, "/sys/", 5) == 0;
}

/* "36 35 98:0 /root /point options [tags] - type source options" */
static void
read_line(struct slow_mounts *m, char *line)
{
	char *rest = strstr(line, " - "), *point = NULL, *word, *save = NULL;
	int n = 0;

	if (rest == NULL)
		return;
	*rest = '\0';
	rest += 3;
	for (word = strtok_r(line, " ", &save); word != NULL && n < 5;
	     word = strtok_r(NULL, " ", &save), n++)
		point = word;
	rest[strcspn(rest, " ")] = '\0';
	if (n < 5 || !is_slow_type(rest))
		return;
	slow_mounts_unescape(point);
	if (is_left_out(point))
		return;
	m->points =
	    xreallocarray(m->points, m->count + 1, sizeof(m->points[0]));
	m->points[m->count++] = xstrndup(point, strlen(point));
}

void
slow_mounts_read(struct slow_mounts *m, char *text)
{
	char *line, *save = NULL;

	slow_mounts_clear(m);
	for (line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save))
		read_line(m, line);
}

void
slow_mounts_clear(struct slow_mounts *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->points[i]);
	free(m->points);
	*m = (struct slow_mounts){ 0 };
}

static struct {
	struct slow_mounts mounts;
	unsigned changes;
	bool tried, known;
	int fd;
} table;

static void
open_table(void)
{
	table.tried = true;
	table.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (table.fd < 0)
		log_warn(-errno, "mount table: starts wait for file servers");
}

/* Each change is told once (proc_pid_mounts(5)). */
static bool
has_changed(void)
{
	struct pollfd change = { .fd = table.fd, .events = POLLPRI };

	return poll(&change, 1, 0) != 0;
}

/* 0, or -errno. */
static int
read_table(struct buf *b)
{
	char piece[4096];
	ssize_t n;

	if (lseek(table.fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = read(table.fd, piece, sizeof(piece))) > 0)
		buf_put(b, piece, (size_t)n);
	if (n < 0)
		return -errno;
	buf_put(b, "", 1);
	return b->failed ? -EMSGSIZE : 0;
}

const struct slow_mounts *
slow_paths_now(void)
{
	struct buf b;
	int err;

	if (!table.tried)
		open_table();
	if (table.fd >= 0 && (has_changed() || !table.known)) {
		buf_init(&b, MOUNTINFO_MAX_BYTES);
		err = read_table(&b);
		if (err == 0)
			slow_mounts_read(&table.mounts, (char *)b.data);
		else
			log_warn(err, "mount table: not read");
		buf_clear(&b);
		table.known = err == 0;
		table.changes++;
	}
	return table.mounts.count > 0 ? &table.mounts : NULL;
}

unsigned
slow_paths_changes(void)
{
	return table.changes;
}

/* --- where a path leads ------------------------------------------------- */

struct walk {
	const struct slow_mounts *mounts;
	char at[PATH_MAX], rest[PATH_MAX], link[PATH_MAX];
	int links;
};

enum step { STEP_ON, STEP_END, STEP_SLOW };

static bool
is_point(const struct slow_mounts *m, const char *path)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->points[i], path) == 0)
			return true;
	return false;
}

static void
cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash != NULL)
		*slash = '\0';
}

/* The link is the last name of w->at. */
static enum step
follow(struct walk *w, size_t len)
{
	size_t rest = strlen(w->rest);

	if (++w->links > LINKS_MAX || len + rest + 2 > sizeof(w->rest))
		return STEP_END;
	if (w->link[0] == '/')
		w->at[0] = '\0';
	else
		cut_last(w->at);
	memmove(w->rest + len + 1, w->rest, rest + 1);
	memcpy(w->rest, w->link, len);
	w->rest[len] = '/';
	return STEP_ON;
}

/* What is not there, or not to be looked at, is not waited for either. A mount
 * point itself is never touched. */
static enum step
look(struct walk *w)
{
	ssize_t n;

	if (is_point(w->mounts, w->at))
		return STEP_SLOW;
	n = readlink(w->at, w->link, sizeof(w->link));
	if (n >= 0)
		return follow(w, (size_t)n);
	return errno == EINVAL ? STEP_ON : STEP_END;
}

static enum step
step(struct walk *w)
{
	char *name = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(name, "/"), at = strlen(w->at);
	bool same = len == 1 && name[0] == '.';
	bool up = len == 2 && name[0] == '.' && name[1] == '.';

	if (len == 0 || at + len + 2 > sizeof(w->at))
		return STEP_END;
	if (up) {
		cut_last(w->at);
	} else if (!same) {
		w->at[at] = '/';
		memcpy(w->at + at + 1, name, len);
		w->at[at + 1 + len] = '\0';
	}
	memmove(w->rest, name + len, strlen(name + len) + 1);
	return up || same ? STEP_ON : look(w);
}

bool
slow_mounts_have(const struct slow_mounts *m, const char *path)
{
	size_t len = strlen(path);
	struct walk w;
	enum step s;

	if (m == NULL || m->count == 0 || path[0] != '/' ||
	    len >= sizeof(w.rest))
		return false;
	w.mounts = m;
	w.links = 0;
	w.at[0] = '\0';
	memcpy(w.rest, path, len + 1);
	while ((s = step(&w)) == STEP_ON)
		continue;
	return s == STEP_SLOW;
}

/* --- what a start opens ------------------------------------------------- */

void
slow_paths_add(char ***paths, const struct slow_mounts *m, const char *path)
{
	size_t n = 0;

	if (!slow_mounts_have(m, path))
		return;
	while (*paths != NULL && (*paths)[n] != NULL)
		n++;
	*paths = xreallocarray(*paths, n + 2, sizeof(char *));
	(*paths)[n] = xstrndup(path, strlen(path));
	(*paths)[n + 1] = NULL;
}

void
slow_paths_free(char **paths)
{
	for (size_t i = 0; paths != NULL && paths[i] != NULL; i++)
		free(paths[i]);
	free(paths);
}

bool
slow_paths_interpreter(const char *program, char *path, size_t size)
{
	char line[SCRIPT_LINE_BYTES + 1], *name;
	_cleanup_close_ int fd =
	    open(program, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
	size_t len;

	if (n < 2 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	name = line + 2 + strspn(line + 2, " \t");
	len = strcspn(name, " \t\n");
	if (len == 0 || len >= size)
		return false;
	memcpy(path, name, len);
	path[len] = '\0';
	return true;
}

/* One that is found is the last that the kernel opens. */
static bool
is_found(char ***paths, const struct slow_mounts *m, const char *program)
{
	char interpreter[SCRIPT_LINE_BYTES];

	if (slow_mounts_have(m, program)) {
		slow_paths_add(paths, m, program);
		return false;
	}
	if (access(program, X_OK) < 0)
		return false;
	if (slow_paths_interpreter(program, interpreter, sizeof(interpreter)))
		slow_paths_add(paths, m, interpreter);
	return true;
}

char **
slow_paths_of_start(
    const struct slow_mounts *m, const char *cwd, const char *const *candidates)
{
	char **paths = NULL;
	bool found = false;

	if (m == NULL)
		return NULL;
	slow_paths_add(&paths, m, cwd);
	for (; *candidates != NULL && !found; candidates++) {
		bool relative = (*candidates)[0] != '/';
		_cleanup_free_ char *path =
		    relative ? xasprintf("%s/%s", cwd, *candidates)
			     : xasprintf("%s", *candidates);

		found = is_found(&paths, m, path);
	}
	return paths;
}
