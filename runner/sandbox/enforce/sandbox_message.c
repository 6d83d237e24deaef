/* SPDX-License-Identifier: ISC */
#include "sandbox_message.h"

#include "fields.h"
#include "frame.h"
#include "rights.h"

/* The bytes of a message that are received together with its length. */
#define FIRST_BYTES 4096

/* --- fields ------------------------------------------------------------- */

static void
put_strings(struct buf *b, const char *const *list)
{
	uint32_t n = 0;

	while (list[n] != NULL)
		n++;
	buf_put_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		buf_put(b, list[i], strlen(list[i]) + 1);
}

/* Returns a string inside the message, or NULL if it is incomplete. */
static char *
get_text(struct buf_reader *r)
{
	const uint8_t *end = r->left > 0 ? memchr(r->p, '\0', r->left) : NULL;
	char *text = (char *)(uintptr_t)r->p;

	if (r->failed || end == NULL) {
		r->failed = true;
		return NULL;
	}
	r->left -= (size_t)(end + 1 - r->p);
	r->p = end + 1;
	return text;
}

/* Reads the number of strings. Each string takes at least one byte, its NUL. */
static uint32_t
get_count(struct buf_reader *r)
{
	uint32_t n = buf_get_u32(r);

	if (n > r->left) {
		r->failed = true;
		return 0;
	}
	return n;
}

/* Returns a new vector; its strings lie in the message. */
static char **
get_strings(struct buf_reader *r)
{
	uint32_t n = get_count(r);
	char **list = xcalloc((size_t)n + 1, sizeof(*list));

	for (uint32_t i = 0; i < n; i++)
		list[i] = get_text(r);
	return list;
}

/* --- messages ----------------------------------------------------------- */

static const struct field mount_fields[] = {
	FIELD_BELOW(plan_mount, kind, PLAN_PRIVATE + 1),
	FIELDS(plan_mount, reopened, scratch),
	FIELD_BELOW(plan_mount, seen.type, FS_OTHER + 1),
	FIELDS(plan_mount, seen.device, seen.inode),
};

static void
put_mount(struct buf *b, const struct plan_mount *m)
{
	fields_put(b, mount_fields, nitems(mount_fields), m);
	buf_put_string(b, m->path, strlen(m->path));
}

static bool
get_mount(struct buf_reader *r, struct plan_mount *m)
{
	char path[PATH_MAX];

	fields_get(r, mount_fields, nitems(mount_fields), m);
	buf_get_string(r, path, sizeof(path));
	if (r->failed || path[0] != '/')
		return false;
	m->path = xstrdup(path);
	return true;
}

void
sandbox_plan_put(struct buf *b, const struct plan *plan, bool whole)
{
	uint32_t n = 0;

	buf_put_u8(b, (uint8_t)plan->base);
	buf_put_u8(b, plan->network);
	buf_put_u8(b, plan->minimal);
	buf_put_u8(b, plan->deny_proc);
	for (size_t i = 0; i < plan->count; i++)
		n += whole || !plan_is_placeholder(&plan->mounts[i]);
	buf_put_u32(b, n);
	for (size_t i = 0; i < plan->count; i++)
		if (whole || !plan_is_placeholder(&plan->mounts[i]))
			put_mount(b, &plan->mounts[i]);
}

void
sandbox_build_put(
    struct buf *b, const struct sandbox_options *o, const struct plan *plan)
{
	buf_put_u8(b, SANDBOX_BUILD);
	buf_put(b, o, sizeof(*o)); /* both ends are the same program */
	sandbox_plan_put(b, plan, false);
}

static int
get_mounts(struct buf_reader *r, struct plan *plan)
{
	uint32_t n = buf_get_u32(r);

	if (r->failed || n > RESOLVE_MOUNTS_MAX)
		return -EBADMSG;
	plan->mounts = xcalloc(n, sizeof(*plan->mounts));
	while (plan->count < n) {
		if (!get_mount(r, &plan->mounts[plan->count]))
			return -EBADMSG;
		plan->count++;
	}
	return 0;
}

int
sandbox_plan_get(struct buf_reader *r, struct plan *plan)
{
	*plan = (struct plan){ 0 };
	plan->base = buf_get_u8(r);
	plan->network = buf_get_u8(r);
	plan->minimal = buf_get_u8(r);
	plan->deny_proc = buf_get_u8(r);
	if (r->failed || plan->base > PLAN_BASE_EMPTY)
		return -EBADMSG;
	return get_mounts(r, plan);
}

int
sandbox_build_get(
    struct buf_reader *r, struct sandbox_options *o, struct plan *plan)
{
	buf_get(r, o, sizeof(*o));
	return sandbox_plan_get(r, plan) < 0 ? -EBADMSG : buf_end(r);
}

int
sandbox_start_get(
    struct buf_reader *r, struct sandbox_command *c, struct plan *cover)
{
	*c = (struct sandbox_command){ 0 };
	*cover = (struct plan){ 0 };
	if (get_mounts(r, cover) < 0)
		return -EBADMSG;
	c->tty = buf_get_u8(r);
	c->given = buf_get_u8(r);
	c->resolver = buf_get_u32(r);
	c->joins = buf_get_u8(r);
	c->cwd = get_text(r);
	c->instead = get_text(r);
	c->candidates = (const char *const *)get_strings(r);
	c->argv = get_strings(r);
	c->envp = get_strings(r);
	return buf_end(r);
}

void
sandbox_command_clear(struct sandbox_command *c)
{
	free((void *)(uintptr_t)c->candidates);
	free((void *)(uintptr_t)c->argv);
	free((void *)(uintptr_t)c->envp);
}

/* For a command all that exist, for its view starts without; else those that
 * the view does not cover. */
static bool
is_bare(const struct placeholder *m, bool command)
{
	return m->seen.type != FS_MISSING && (command || !m->covered);
}

static bool
put_bare(struct buf *b, const struct placeholders *p, bool command)
{
	uint32_t bare = 0;

	for (size_t i = 0; i < p->count; i++)
		bare += is_bare(&p->all[i], command);
	buf_put_u32(b, bare);
	for (size_t i = 0; i < p->count; i++) {
		const struct plan_mount m = { .kind = PLAN_READ,
			.path = (char *)(uintptr_t)p->all[i].path,
			.seen = p->all[i].seen };

		if (is_bare(&p->all[i], command))
			put_mount(b, &m);
	}
	return bare > 0;
}

bool
sandbox_cover_put(struct buf *b, const struct placeholders *p)
{
	buf_put_u8(b, SANDBOX_COVER);
	return put_bare(b, p, false);
}

void
sandbox_start_put(struct buf *b, const struct sandbox_command *c, uint8_t joins,
    const struct placeholders *p)
{
	buf_put_u8(b, SANDBOX_START);
	put_bare(b, p, true);
	buf_put_u8(b, c->tty);
	buf_put_u8(b, c->given);
	buf_put_u32(b, c->resolver);
	buf_put_u8(b, joins);
	buf_put(b, c->cwd, strlen(c->cwd) + 1);
	buf_put(b, c->instead, strlen(c->instead) + 1);
	put_strings(b, c->candidates);
	put_strings(b, (const char *const *)c->argv);
	put_strings(b, (const char *const *)c->envp);
}

int
sandbox_cover_get(struct buf_reader *r, struct plan *plan)
{
	*plan = (struct plan){ 0 };
	return get_mounts(r, plan) < 0 ? -EBADMSG : buf_end(r);
}

void
sandbox_check_put(struct buf *b)
{
	buf_put_u8(b, SANDBOX_CHECK);
}

void
sandbox_files_put(struct buf *b)
{
	buf_put_u8(b, SANDBOX_FILES);
}

void
sandbox_sockets_put(struct buf *b, const struct loopback_socket *s, size_t n)
{
	buf_put_u8(b, SANDBOX_SOCKET);
	buf_put_u8(b, (uint8_t)n);
	buf_put(b, s, n * sizeof(*s)); /* both ends are the same program */
}

int
sandbox_sockets_get(
    struct buf_reader *r, struct loopback_socket sockets[LOOPBACK_SOCKETS_MAX])
{
	uint8_t n = buf_get_u8(r);

	if (n > LOOPBACK_SOCKETS_MAX)
		return -EBADMSG;
	buf_get(r, sockets, n * sizeof(*sockets));
	return buf_end(r) < 0 ? -EBADMSG : n;
}

/* All but the error, which comes first. */
static const struct field answer_fields[] = {
	FIELDS(sandbox_answer, enforcing, stale, step),
	FIELD(FIELD_U32, sandbox_answer, command),
	FIELD(FIELD_U32, sandbox_answer, init),
	FIELDS(sandbox_answer, landlock_abi, landlock_empty, no_namespaces,
	    no_proc, loopback, own_unix, guards_ports, names, has_tmp,
	    elsewhere),
};

void
sandbox_answer_put(struct buf *b, const struct sandbox_answer *a)
{
	buf_put_u32(b, (uint32_t)-a->err);
	fields_put(b, answer_fields, nitems(answer_fields), a);
}

int
sandbox_answer_get(struct buf_reader *r, struct sandbox_answer *a)
{
	a->err = -(int)(buf_get_u32(r) & 0xffff);
	fields_get(r, answer_fields, nitems(answer_fields), a);
	a->command &= INT_MAX;
	a->init &= INT_MAX;
	return buf_end(r);
}

/* --- sending and receiving ---------------------------------------------- */

/* Tells whether the call that has just failed is to be made again. */
static bool
is_tried_again(const struct sandbox_patience *patience)
{
	if (errno == EINTR)
		return true;
	if (errno != EAGAIN)
		return false;
	if (patience != NULL && patience->waits(patience->arg))
		return true;
	errno = ETIMEDOUT;
	return false;
}

static int
send_all(
    int fd, const uint8_t *p, size_t n, const struct sandbox_patience *patience)
{
	while (n > 0) {
		ssize_t done = send(fd, p, n, MSG_NOSIGNAL);

		if (done < 0 && !is_tried_again(patience))
			return -errno;
		if (done > 0) {
			p += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

/*
 * Sends length and message with one call, unless the socket takes only a part.
 */
int
sandbox_send(int fd, const struct buf *b, const int *fds, size_t nfds,
    const struct sandbox_patience *patience)
{
	uint8_t header[FRAME_HEADER_BYTES];
	struct iovec iov[2] = { { header, sizeof(header) },
		{ b->data, b->len } };
	_Alignas(struct cmsghdr) char
	    control[CMSG_SPACE(SANDBOX_FDS_MAX * sizeof(int))] = { 0 };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = nitems(iov) };
	size_t head = sizeof(header), done;
	ssize_t n;
	int err = 0;

	if (b->failed || b->len == 0 || b->len > SANDBOX_MESSAGE_MAX)
		return -E2BIG;
	frame_put_length(header, (uint32_t)b->len);
	/* The descriptors come with the first byte. */
	if (nfds > 0)
		rights_attach(&msg, control, fds, nfds);
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && is_tried_again(patience));
	if (n < 0)
		return -errno;
	done = (size_t)n;
	if (done < head)
		err = send_all(fd, header + done, head - done, patience);
	done = done < head ? 0 : done - head;
	if (err < 0)
		return err;
	return send_all(fd, b->data + done, b->len - done, patience);
}

static int
recv_all(int fd, uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t done = recv(fd, p, n, 0);

		if (done == 0)
			return -EPIPE;
		if (done < 0 && errno != EINTR)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (done > 0) {
			p += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

/*
 * Receives with one call: at least the header, and up to FIRST_BYTES of the
 * message into `room`. Returns the number of bytes in `room`, or -errno.
 */
static ssize_t
recv_first(int fd, uint8_t header[FRAME_HEADER_BYTES], uint8_t *room,
    int fds[SANDBOX_FDS_MAX], size_t *nfds)
{
	struct iovec iov[2] = { { header, FRAME_HEADER_BYTES },
		{ room, FIRST_BYTES } };
	_Alignas(struct cmsghdr) char
	    control[CMSG_SPACE(SANDBOX_FDS_MAX * sizeof(int))];
	struct msghdr msg = { .msg_iov = iov,
		.msg_iovlen = nitems(iov),
		.msg_control = control,
		.msg_controllen = sizeof(control) };
	ssize_t n;
	int err;

	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	*nfds = 0;
	rights_take(&msg, fds, nfds, SANDBOX_FDS_MAX);
	if (n == 0)
		return -EPIPE;
	if (msg.msg_flags & MSG_CTRUNC)
		return -EBADMSG;
	if (n >= FRAME_HEADER_BYTES)
		return n - FRAME_HEADER_BYTES;
	err = recv_all(fd, header + n, FRAME_HEADER_BYTES - (size_t)n);
	return err < 0 ? err : 0;
}

int
sandbox_recv(int fd, struct buf *b, int fds[SANDBOX_FDS_MAX], size_t *nfds)
{
	uint8_t header[FRAME_HEADER_BYTES], *room;
	uint32_t len;
	ssize_t got;
	int err;

	buf_clear(b);
	room = buf_reserve(b, FIRST_BYTES);
	got = recv_first(fd, header, room, fds, nfds);
	if (got < 0)
		return (int)got;
	len = frame_get_length(header);
	/* A request is answered before the next one, so nothing may follow. */
	if (len == 0 || len > SANDBOX_MESSAGE_MAX || (size_t)got > len)
		return -EBADMSG;
	buf_commit(b, (size_t)got);
	if ((size_t)got == len)
		return 0;
	room = buf_reserve(b, len - (size_t)got);
	if (room == NULL)
		return -EBADMSG;
	err = recv_all(fd, room, len - (size_t)got);
	if (err == 0)
		buf_commit(b, len - (size_t)got);
	return err;
}
