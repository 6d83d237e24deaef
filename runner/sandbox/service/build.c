/* SPDX-License-Identifier: ISC */
#include "build.h"

#include <event2/event.h>

#include "loop.h"
#include "slow_paths.h"

/* How often a search is looked at, and how many looks in a row find it in one
 * wait where the file system does not answer. */
#define LOOK_SECONDS 5
#define LOOKS_STUCK  2
/* As many looks as a tree of any size needs. */
#define LOOKS_MAX 120

/* Its descriptor. */
#define TELL_FD 3

/* Scripts whose interpreter is a script, as in the kernel. */
#define INTERPRETERS_MAX 5

#define READ_BYTES (64u << 10)

/* What the process tells first after the paths; nothing follows a NOTHING. */
enum { VERDICT, NOTHING };

/* --- the process -------------------------------------------------------- */

static void
write_all(const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len > 0) {
		ssize_t n = write(TELL_FD, p, len);

		if (n <= 0)
			_exit(1);
		p += n;
		len -= (size_t)n;
	}
}

static void
tell_progress(void)
{
	write_all("", 1);
}

static void
tell(const struct sandbox_verdict *v)
{
	const char *hosts = v->plan.hosts;
	struct buf b;

	buf_init(&b, SANDBOX_MESSAGE_MAX);
	buf_put_u8(&b, VERDICT);
	buf_put_u32(&b, (uint32_t)-v->err);
	buf_put_string(&b, v->error, strlen(v->error));
	buf_put_u8(&b, v->direct);
	buf_put_u32(&b, v->clamped);
	sandbox_plan_put(&b, &v->plan, true);
	if (hosts != NULL)
		buf_put(&b, hosts, strlen(hosts) + 1);
	if (b.failed)
		_exit(1);
	write_all(b.data, b.len);
	_exit(0);
}

/* Does with the path what a start will do. A failure does not matter here,
 * because the start fails in the same way. */
static void
open_path(const char *path)
{
	char interpreter[PATH_MAX];
	struct stat st;

	for (int i = 0; i < INTERPRETERS_MAX && stat(path, &st) == 0; i++) {
		if (S_ISDIR(st.st_mode)) {
			if (chdir(path) == 0)
				close(open(".", O_PATH | O_CLOEXEC));
			return;
		}
		if (!S_ISREG(st.st_mode) || access(path, X_OK) < 0 ||
		    !slow_paths_interpreter(
			path, interpreter, sizeof(interpreter)))
			return;
		path = interpreter;
	}
}

static void __attribute__((noreturn))
child(struct build *b, struct sandboxes *sb, int fd)
{
	static const uint8_t nothing = NOTHING;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "execd-build");
	reaper_reset_signals();
	if (dup2(fd, TELL_FD) < 0)
		_exit(1);
	close_from(TELL_FD + 1);
	for (size_t i = 0; i < b->npaths; i++) {
		tell_progress();
		open_path(b->paths[i]);
	}
	tell_progress();
	sb->made = NULL;
	sb->tell = tell;
	b->user->go_on(b);
	write_all(&nothing, 1);
	_exit(0);
}

/* --- the runner's side -------------------------------------------------- */

static bool
is_opening(const struct build *b)
{
	return b->npaths > 0 && b->at <= b->npaths;
}

const char *
build_path(const struct build *b)
{
	return b->paths[b->at > 0 ? b->at - 1 : 0];
}

void
build_stop(struct build *b)
{
	if (b->user == NULL)
		return;
	b->user = NULL;
	event_del(&b->deadline);
	buf_clear(&b->text);
	if (b->fd < 0)
		return;
	event_del(&b->in_event);
	close(steal_fd(&b->fd));
	/* What waits in the kernel goes when the kernel lets it go. */
	if (b->child.pid > 0)
		kill(b->child.pid, SIGKILL);
	reaper_remove(&b->child);
}

static int
get_verdict(const struct buf *text, size_t at, struct sandbox_verdict *v)
{
	struct buf_reader r;

	buf_reader_init(&r, text->data + at, text->len - at);
	v->err = -(int)buf_get_u32(&r);
	buf_get_string(&r, v->error, sizeof(v->error));
	v->direct = buf_get_u8(&r);
	v->clamped = buf_get_u32(&r);
	if (sandbox_plan_get(&r, &v->plan) < 0)
		return -EBADMSG;
	if (r.left > 0 && r.p[r.left - 1] == '\0')
		v->plan.hosts = xstrndup((const char *)r.p, r.left - 1);
	else if (r.left > 0)
		return -EBADMSG;
	return 0;
}

/* Tells how it ended. err: 0, or why nothing came of it. */
static void
end(struct build *b, int err)
{
	const struct build_user *user = b->user;
	struct sandbox_verdict v = { 0 };
	size_t at = b->npaths + 1;
	bool nothing =
	    err == 0 && b->text.len == at + 1 && b->text.data[at] == NOTHING;

	if (err == 0 && !nothing)
		err = b->text.len <= at ? -EIO
					: get_verdict(&b->text, at + 1, &v);
	build_stop(b);
	if (err < 0 && !is_opening(b)) {
		log_error(err, "sandbox: deciding about a request");
		plan_clear(&v.plan);
		v = (struct sandbox_verdict){ 0 };
		v.err = sandboxes_refuse(
		    err == -ETIMEDOUT
			? "a file system below what its policy names does not answer"
			: "looking at what its policy names",
		    v.error);
	} else if (err < 0) {
		v.err = err;
	}
	user->done(b, nothing ? NULL : &v);
	plan_clear(&v.plan);
}

static void
in_cb(evutil_socket_t fd, short what, void *arg)
{
	struct build *b = arg;
	bool was_opening = is_opening(b);
	uint8_t *room = buf_reserve(&b->text, READ_BYTES);
	ssize_t n = room == NULL ? 0 : read(fd, room, READ_BYTES);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end(b, room == NULL ? -EMSGSIZE : 0);
		return;
	}
	buf_commit(&b->text, (size_t)n);
	b->at = b->text.len < b->npaths + 1 ? b->text.len : b->npaths + 1;
	if (was_opening && !is_opening(b))
		loop_add_ms(&b->deadline, LOOK_SECONDS * 1000);
}

/* Tells whether the search waits as it did at the looks before. */
static bool
is_stuck(struct build *b)
{
	uint64_t switches;
	bool same = reaper_is_waiting(&b->child, &switches) && b->looks > 0 &&
		    switches == b->switches;

	b->stuck = same ? b->stuck + 1 : 0;
	b->switches = switches;
	return b->stuck == LOOKS_STUCK || ++b->looks == LOOKS_MAX;
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct build *b = arg;

	if (b->fd < 0)
		end(b, -EAGAIN);
	else if (is_opening(b) || is_stuck(b))
		end(b, -ETIMEDOUT);
	else
		loop_add_ms(&b->deadline, LOOK_SECONDS * 1000);
}

/* 0, or -errno. */
static int
start(struct build *b, struct sandboxes *sb)
{
	int fds[2], err;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	pid = fcntl(fds[1], F_SETFL, 0) < 0 ? -1 : fork();
	err = -errno;
	if (pid == 0)
		child(b, sb, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return err;
	}
	b->fd = fds[0];
	reaper_add(&b->child, pid, NULL);
	event_assign(
	    &b->in_event, sb->pool.base, b->fd, EV_READ | EV_PERSIST, in_cb, b);
	loop_add(&b->in_event, NULL);
	return 0;
}

void
build_begin(struct build *b, const struct build_user *user,
    struct sandboxes *sb, char *const *paths)
{
	*b = (struct build){ .user = user, .paths = paths, .fd = -1 };
	while (paths != NULL && paths[b->npaths] != NULL)
		b->npaths++;
	buf_init(&b->text, SANDBOX_MESSAGE_MAX);
	event_assign(&b->deadline, sb->pool.base, -1, 0, deadline_cb, b);
	/* Who cannot begin ends in the next turn of the loop. */
	loop_add_ms(&b->deadline, start(b, sb) < 0 ? 0
				  : b->npaths > 0  ? BUILD_WAIT_SECONDS * 1000
						   : LOOK_SECONDS * 1000);
}
