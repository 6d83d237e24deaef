/* SPDX-License-Identifier: ISC */
/*
 * Writes a record to each kind of destination.
 */
#include "audit_sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "spawn_client.h"
#include "util.h"

/* Larger records go to the journal in a memfd, because a socket may not take a
 * datagram of that size. */
#define JOURNAL_DATAGRAM_MAX (16u << 10)

/* --- the file ----------------------------------------------------------- */

/* If a full disk cut the last line, ends it before the next one. */
static int
write_file(struct audit_sink *s, const struct audit_record *r)
{
	struct iovec iov[] = { { (char *)"\n", s->torn },
		{ (char *)(uintptr_t)r->text.ptr, r->text.len },
		{ (char *)"\n", 1 } };
	ssize_t n = writev(s->fd, iov, nitems(iov));

	if (n < 0)
		return -errno;
	s->torn = (size_t)n < s->torn + r->text.len + 1;
	return s->torn ? -ENOSPC : 0;
}

/* --- sockets ------------------------------------------------------------ */

static int
open_socket(struct audit_sink *s)
{
	struct control_place place;
	int fd;

	audit_sink_place(s, PLACE_AUDIT_SOCKET, &place);
	fd = spawn_open(&place);
	if (fd < 0)
		return fd;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	return 0;
}

void
audit_sink_place(
    const struct audit_sink *s, unsigned kind, struct control_place *place)
{
	*place = (struct control_place){ .number = s->number,
		.kind = (uint8_t)kind };
	snprintf(place->path, sizeof(place->path), "%s", s->path);
}

/* Tells whether the receiver behind this path is gone and may have been
 * replaced. */
static bool
is_orphaned(int err)
{
	return err == -ECONNREFUSED || err == -ENOTCONN || err == -ECONNRESET ||
	       err == -EPIPE;
}

/* Never waits. What is not taken now is tried again (audit_retry()). */
static int
send_once(const struct audit_sink *s, const struct msghdr *m)
{
	return sendmsg(s->fd, m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int
send_datagram(struct audit_sink *s, const struct msghdr *m)
{
	int err = s->fd < 0 ? -ENOTCONN : send_once(s, m);

	if (!is_orphaned(err))
		return err;
	err = open_socket(s);
	return err < 0 ? err : send_once(s, m);
}

/* --- syslog ------------------------------------------------------------- */

/* Writes as syslog(3) does: priority, local time, program and pid. */
static int
write_syslog(struct audit_sink *s, const struct audit_record *r)
{
	char head[64];
	struct iovec iov[] = { { head, 0 },
		{ (char *)(uintptr_t)r->text.ptr, r->text.len } };
	const struct msghdr m = { .msg_iov = iov, .msg_iovlen = nitems(iov) };
	time_t now = time(NULL);
	char date[32];
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(date, sizeof(date), "%b %e %H:%M:%S", &tm);
	iov[0].iov_len = (size_t)snprintf(head, sizeof(head),
	    "<%d>%s execd[%d]: ", LOG_AUTHPRIV | LOG_INFO, date, (int)getpid());
	return send_datagram(s, &m);
}

/* --- the journal -------------------------------------------------------- */

void
audit_put_field(struct buf *b, const char *name, struct slice value)
{
	buf_puts(b, name);
	if (memchr(value.ptr, '\n', value.len) == NULL) {
		buf_puts(b, "=");
	} else {
		buf_puts(b, "\n");
		buf_put_u64(b, value.len);
	}
	buf_put(b, value.ptr, value.len);
	buf_puts(b, "\n");
}

/* The memfd is sealed: the journal maps it, and nobody may change it
 * meanwhile. */
static int
make_memfd(const struct buf *b)
{
	_cleanup_close_ int fd =
	    memfd_create("execd-audit", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (write(fd, b->data, b->len) != (ssize_t)b->len)
		return -ENOSPC;
	if (fcntl(fd, F_ADD_SEALS,
		F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	return steal_fd(&fd);
}

static int
send_memfd(struct audit_sink *s, const struct buf *b)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	const struct msghdr m = { .msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	_cleanup_close_ int fd = make_memfd(b);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	if (fd < 0)
		return fd;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return send_datagram(s, &m);
}

static int
write_journal(struct audit_sink *s, const struct audit_record *r)
{
	struct iovec iov;
	const struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct buf b;
	int err;

	buf_init(&b, SIZE_MAX);
	audit_put_field(&b, "MESSAGE", r->text);
	buf_printf(&b,
	    "PRIORITY=%d\nSYSLOG_FACILITY=%d\nSYSLOG_IDENTIFIER=execd\n",
	    LOG_INFO, LOG_FAC(LOG_AUTHPRIV));
	buf_put(&b, r->fields.ptr, r->fields.len);
	iov = (struct iovec){ b.data, b.len };
	err = b.len > JOURNAL_DATAGRAM_MAX ? send_memfd(s, &b)
					   : send_datagram(s, &m);
	buf_clear(&b);
	return err;
}

const struct audit_kind audit_kinds[AUDIT_PLACES] = {
	[AUDIT_FILE] = { "audit log", PLACE_AUDIT_FILE, write_file },
	[AUDIT_SYSLOG] = { "audit log, syslog", PLACE_AUDIT_SOCKET,
	    write_syslog },
	[AUDIT_JOURNAL] = { "audit log, journal", PLACE_AUDIT_SOCKET,
	    write_journal },
};
