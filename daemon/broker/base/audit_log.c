/* SPDX-License-Identifier: ISC */
#include "audit_log.h"

#include <sys/uio.h>
#include <syslog.h>

#include "secret.h"
#include "spawn_client.h"

/* The most bytes of one line: two texts of CONTROL_COMMAND_MAX bytes, each byte
 * escaped as six, and names, a peer and a reason of bounded length. */
#define EVENT_MAX (12u * CONTROL_COMMAND_MAX + (16u << 10))

/* Members that are also fields of the journal. */
static const struct {
	const char *key, *field;
} journal_fields[] = {
	{ "event", "EXECD_EVENT" },
	{ "session", "EXECD_SESSION" },
	{ "identity", "EXECD_IDENTITY" },
	{ "process", "EXECD_PROCESS" },
};

/* --- kinds of destinations ---------------------------------------------- */

/* No function waits long, because the broker does nothing else meanwhile. */

/* The forms of a record. text is one line without its end. */
struct audit_record {
	struct slice text;
	struct slice fields; /* for the journal, each complete */
};

struct audit_kind {
	const char *name; /* its name in messages */
	unsigned kind;	  /* enum control_place_kind */
	/* Returns 0 or -errno. */
	int (*write)(struct audit_sink *s, const struct audit_record *r);
};

/* Describes the destination to root. */
static void sink_place(
    const struct audit_sink *s, unsigned kind, struct control_place *place);

/* Larger records go to the journal in a memfd, because a socket may not take a
 * datagram of that size. */
#define JOURNAL_DATAGRAM_MAX (16u << 10)

/* --- the file ----------------------------------------------------------- */

static int open_again(struct audit_sink *s, unsigned kind);

/* What is appended to a removed file is lost with it. */
static int
follow_file(struct audit_sink *s)
{
	struct stat st;
	int err;

	if (fstat(s->fd, &st) < 0 || st.st_nlink > 0)
		return 0;
	err = open_again(s, PLACE_AUDIT_FILE);
	if (err < 0)
		return err;
	s->torn = false;
	log_warn(0,
	    "audit log %s: somebody removed the file with its records; a new "
	    "one is begun",
	    s->path);
	return 0;
}

/* A full disk may take the beginning of a line only. This is removed again, or,
 * of a file that only grows (chattr(1)), ended before the next line. */
static int
append(struct audit_sink *s, const struct audit_record *r)
{
	struct iovec iov[] = { { (char *)"\n", s->torn },
		{ (char *)(uintptr_t)r->text.ptr, r->text.len },
		{ (char *)"\n", 1 } };
	ssize_t n = writev(s->fd, iov, nitems(iov));
	struct stat st;

	if (n < 0)
		return -errno;
	if ((size_t)n == s->torn + r->text.len + 1) {
		s->torn = false;
		return 0;
	}
	if (fstat(s->fd, &st) == 0 && ftruncate(s->fd, st.st_size - n) == 0)
		return -ENOSPC;
	s->torn = true;
	return -ENOSPC;
}

static int
write_file(struct audit_sink *s, const struct audit_record *r)
{
	int err = follow_file(s);

	return err < 0 ? err : append(s, r);
}

/* --- sockets ------------------------------------------------------------ */

static int
open_again(struct audit_sink *s, unsigned kind)
{
	struct control_place place;
	int fd;

	sink_place(s, kind, &place);
	fd = spawn_open(&place);
	if (fd < 0)
		return fd;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	return 0;
}

static void
sink_place(
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
	err = open_again(s, PLACE_AUDIT_SOCKET);
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

/* Appends a field of the journal's own protocol
 * (systemd.io/JOURNAL_NATIVE_PROTOCOL). */
static void
put_field(struct buf *b, const char *name, struct slice value)
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

static int
send_memfd(struct audit_sink *s, const struct buf *b)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	const struct msghdr m = { .msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	_cleanup_close_ int fd = secret_memfd("execd-audit", b->data, b->len);
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
	put_field(&b, "MESSAGE", r->text);
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

static const struct audit_kind audit_kinds[AUDIT_PLACES] = {
	[AUDIT_FILE] = { "audit log", PLACE_AUDIT_FILE, write_file },
	[AUDIT_SYSLOG] = { "audit log, syslog", PLACE_AUDIT_SOCKET,
	    write_syslog },
	[AUDIT_JOURNAL] = { "audit log, journal", PLACE_AUDIT_SOCKET,
	    write_journal },
};

/* --- the log ------------------------------------------------------------ */

void
audit_rules_init(struct audit_rules *a)
{
	*a = (struct audit_rules){ .required = true };
	for (size_t i = 0; i < AUDIT_PLACES; i++) {
		a->sinks[i].fd = -1;
		STAILQ_INIT(&a->sinks[i].held);
	}
}

static struct audit_held *
take_held(struct audit_sink *s)
{
	struct audit_held *h = STAILQ_FIRST(&s->held);

	if (h == NULL)
		return NULL;
	STAILQ_REMOVE_HEAD(&s->held, link);
	s->nheld--;
	return h;
}

static void
free_held(struct audit_held *h)
{
	buf_clear(&h->text);
	buf_clear(&h->fields);
	free(h);
}

void
audit_rules_close(struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++) {
		struct audit_held *h;

		while ((h = take_held(&a->sinks[i])) != NULL)
			free_held(h);
		if (a->sinks[i].fd >= 0)
			close(a->sinks[i].fd);
		a->sinks[i].fd = -1;
	}
}

bool
audit_is_kept(const struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++)
		if (a->sinks[i].path != NULL)
			return true;
	return false;
}

int
audit_place(
    struct audit_rules *a, const char **place, char why[CONTROL_WHY_MAX])
{
	int err = 0;

	for (size_t i = 0; i < AUDIT_PLACES && err == 0; i++) {
		struct audit_sink *s = &a->sinks[i];
		struct control_found found;
		struct control_place p;

		*place = s->path;
		if (s->path == NULL)
			continue;
		sink_place(s, audit_kinds[i].kind, &p);
		err = spawn_place(&p, &s->fd, &found);
		s->number = p.number;
		snprintf(why, CONTROL_WHY_MAX, "%s",
		    found.why[0] != '\0' ? found.why : strerror(-err));
	}
	return err;
}

/* --- events ------------------------------------------------------------- */

/* Formats the time as RFC 3339, in UTC. */
static void
format_now(char text[40])
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n = strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, 40 - n, ".%03ldZ", now.tv_nsec / 1000000);
}

/* Whoever was refused asks the operator why. */
static struct {
	char *text[AUDIT_REFUSALS_MAX];
	size_t n; /* all that there ever were */
} refusals;

static void
remember(const struct buf *text)
{
	char **place = &refusals.text[refusals.n++ % AUDIT_REFUSALS_MAX];

	free(*place);
	*place = xasprintf("%.*s", (int)text->len, (char *)text->data);
}

const char *
audit_refusal(size_t i)
{
	size_t kept =
	    refusals.n < AUDIT_REFUSALS_MAX ? refusals.n : AUDIT_REFUSALS_MAX;

	return i < kept
		   ? refusals.text[(refusals.n - kept + i) % AUDIT_REFUSALS_MAX]
		   : NULL;
}

static bool
is_refusal(const char *event)
{
	return strcmp(event, "refused") == 0 ||
	       strcmp(event, "session-refused") == 0;
}

void
audit_begin(struct audit_event *e, const char *event)
{
	char now[40];

	format_now(now);
	e->start = (struct audit_start){ .session = "" };
	e->refusal = is_refusal(event);
	buf_init(&e->text, EVENT_MAX);
	buf_init(&e->fields, EVENT_MAX);
	json_writer_init(&e->json, &e->text);
	json_begin(&e->json, '{');
	audit_string(e, "time", now);
	audit_string(e, "event", event);
}

void
audit_string(struct audit_event *e, const char *key, const char *value)
{
	json_key_cstring(&e->json, key, value);
	for (size_t i = 0; i < nitems(journal_fields); i++)
		if (strcmp(journal_fields[i].key, key) == 0)
			put_field(&e->fields, journal_fields[i].field,
			    slice_of(value));
}

void
audit_flag(struct audit_event *e, const char *key, bool value)
{
	json_key_bool(&e->json, key, value);
}

void
audit_number(struct audit_event *e, const char *key, uint64_t value)
{
	json_key_u64(&e->json, key, value);
}

/* --- destinations ------------------------------------------------------- */

static int
put(struct audit_rules *a, size_t place, const struct buf *text,
    const struct buf *fields)
{
	const struct audit_record r = {
		.text = { (char *)text->data, text->len },
		.fields = { (char *)fields->data, fields->len },
	};

	return audit_kinds[place].write(&a->sinks[place], &r);
}

/* Records how many records are missing before the next record. */
static int
put_lost(struct audit_rules *a, size_t place)
{
	struct audit_sink *s = &a->sinks[place];
	struct audit_event e;
	int err;

	audit_begin(&e, "records-lost");
	audit_number(&e, "lost", s->lost);
	json_end(&e.json, '}');
	err = put(a, place, &e.text, &e.fields);
	buf_clear(&e.text);
	buf_clear(&e.fields);
	if (err < 0)
		return err;
	log_warn(0, "%s %s: works again, %llu records are missing",
	    audit_kinds[place].name, s->path, (unsigned long long)s->lost);
	s->failing = false;
	s->lost = 0;
	return 0;
}

/* Gives up the records that wait for the destination. */
static void
give_up(struct audit_rules *a, size_t place)
{
	struct audit_sink *s = &a->sinks[place];
	struct audit_held *h;

	/* This is logged once: a failing audit log must not fill the
	 * other log. */
	log_error(s->held_for, "%s %s", audit_kinds[place].name, s->path);
	s->failing = true;
	while ((h = take_held(s)) != NULL) {
		s->lost++;
		a->lost++;
		if (h->start.session[0] != '\0' && a->unrecorded != NULL)
			a->unrecorded(&h->start);
		free_held(h);
	}
}

static int
hold(struct audit_rules *a, size_t place, const struct audit_event *e, int err)
{
	struct audit_sink *s = &a->sinks[place];
	struct audit_held *h = xcalloc(1, sizeof(*h));

	buf_init(&h->text, EVENT_MAX);
	buf_init(&h->fields, EVENT_MAX);
	buf_put(&h->text, e->text.data, e->text.len);
	buf_put(&h->fields, e->fields.data, e->fields.len);
	h->start = e->start;
	if (s->nheld++ == 0) {
		s->held_since_ms = now_ms();
		s->held_for = err;
	}
	STAILQ_INSERT_TAIL(&s->held, h, link);
	if (s->nheld >= AUDIT_HELD_MAX)
		give_up(a, place);
	return s->failing ? err : 0;
}

/* Writes the waiting records in their order, as far as they are taken. */
static void
put_held(struct audit_rules *a, size_t place)
{
	struct audit_sink *s = &a->sinks[place];
	struct audit_held *h;

	while ((h = STAILQ_FIRST(&s->held)) != NULL) {
		int err = put(a, place, &h->text, &h->fields);

		if (err < 0) {
			s->held_for = err;
			return;
		}
		a->records++;
		free_held(take_held(s));
	}
}

/* The receiver is being restarted, or does not keep up. A full disk is another
 * error. */
static bool
is_away(int err)
{
	static const int away[] = { ENOENT, ECONNREFUSED, ENOTCONN, ECONNRESET,
		EPIPE, EAGAIN, ENOBUFS };

	for (size_t i = 0; i < nitems(away); i++)
		if (err == -away[i])
			return true;
	return false;
}

static int
deliver(struct audit_rules *a, size_t place, const struct audit_event *e)
{
	struct audit_sink *s = &a->sinks[place];
	int err;

	put_held(a, place);
	if (s->nheld > 0)
		return hold(a, place, e, s->held_for);
	err = s->failing ? put_lost(a, place) : 0;
	if (err == 0)
		err = e->text.failed ? -E2BIG
				     : put(a, place, &e->text, &e->fields);
	if (err == 0) {
		a->records++;
		return 0;
	}
	if (!s->failing && is_away(err))
		return hold(a, place, e, err);
	if (!s->failing)
		log_error(err, "%s %s", audit_kinds[place].name, s->path);
	s->failing = true;
	s->lost++;
	a->lost++;
	return err;
}

int
audit_end(struct audit_event *e, struct audit_rules *a)
{
	int first = 0;

	json_end(&e->json, '}');
	if (e->refusal)
		remember(&e->text);
	for (size_t i = 0; i < AUDIT_PLACES; i++) {
		int err = a->sinks[i].path != NULL ? deliver(a, i, e) : 0;

		if (first == 0)
			first = err;
	}
	buf_clear(&e->text);
	buf_clear(&e->fields);
	return first;
}

bool
audit_is_failing(const struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++)
		if (a->sinks[i].failing)
			return true;
	return false;
}

bool
audit_is_waiting(const struct audit_rules *a)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++)
		if (a->sinks[i].nheld > 0)
			return true;
	return false;
}

uint64_t
audit_lag_ms(const struct audit_rules *a, int64_t now)
{
	int64_t lag = 0;

	for (size_t i = 0; i < AUDIT_PLACES; i++) {
		const struct audit_sink *s = &a->sinks[i];

		if (s->nheld > 0 && now - s->held_since_ms > lag)
			lag = now - s->held_since_ms;
	}
	return (uint64_t)lag;
}

void
audit_retry(struct audit_rules *a, int64_t now)
{
	for (size_t i = 0; i < AUDIT_PLACES; i++) {
		struct audit_sink *s = &a->sinks[i];

		put_held(a, i);
		if (s->nheld > 0 && now - s->held_since_ms >= AUDIT_GRACE_MS)
			give_up(a, i);
		else if (s->failing)
			put_lost(a, i);
	}
}
