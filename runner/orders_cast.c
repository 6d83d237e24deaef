/*
 * A file of the monitor's for the recording of a terminal: it is waited for,
 * and what is ordered meanwhile is put off.
 */
#include "orders_parts.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "audit_text.h"
#include "log.h"
#include "queue.h"
#include "seqpacket.h"
#include "util.h"

/* Orders that came while another was waited for; their turn is next. */
struct stashed_order {
	STAILQ_ENTRY(stashed_order) link; /* stash */
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds, len;
	uint8_t packet[];
};
static STAILQ_HEAD(, stashed_order) stash = STAILQ_HEAD_INITIALIZER(stash);
static unsigned stashed;

/* More than the monitor says in so short a time. */
#define STASH_MAX 1024

void
orders_take_stashed_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stashed_order *o;

	while ((o = STAILQ_FIRST(&stash)) != NULL) {
		STAILQ_REMOVE_HEAD(&stash, link);
		stashed--;
		orders_take(o->packet, o->len, o->fds, o->nfds);
		free(o);
	}
}

static void
put_off(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct stashed_order *o = xmalloc(sizeof(*o) + len);

	if (++stashed > STASH_MAX)
		log_fatal(
		    "the monitor gave %d orders in place of a file", STASH_MAX);
	o->len = len;
	o->nfds = nfds;
	memcpy(o->packet, packet, len);
	memcpy(o->fds, fds, nfds * sizeof(int));
	if (STAILQ_EMPTY(&stash) &&
	    event_base_once(orders_base, -1, EV_TIMEOUT, orders_take_stashed_cb,
		NULL, &(struct timeval){ 0, 0 }) < 0)
		log_fatal("orders that were put off: no event");
	STAILQ_INSERT_TAIL(&stash, o, link);
}

/* The file, or -errno; -EAGAIN: it was another order. */
static int
take_cast(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct control_cast_file file;

	if (control_peek(packet, len) != RUNNER_ORDER_CAST) {
		put_off(packet, len, fds, nfds);
		return -EAGAIN;
	}
	if (control_get(packet, len, RUNNER_ORDER_CAST, &file) < 0 ||
	    nfds != (file.error == 0) || file.error > 4095 ||
	    file.error == EAGAIN)
		log_fatal("impossible order from the monitor: %s",
		    control_name(RUNNER_ORDER_CAST));
	return file.error == 0 ? fds[0] : -(int)file.error;
}

/* The monitor never waits for a runner, so this wait has an end as well. */
int
orders_open_cast(struct slice process)
{
	struct pollfd in = { .fd = CONTROL_FD, .events = POLLIN };
	struct control_cast ask = { 0 };
	uint8_t packet[CONTROL_MESSAGE_MAX];
	int fds[SEQPACKET_FDS_MAX], err = -EAGAIN;
	size_t nfds;
	ssize_t n;

	audit_copy_id(ask.process, process);
	orders_report(RUNNER_REPORT_CAST, &ask);
	while (err == -EAGAIN) {
		if (poll(&in, 1, REPORT_WAIT_MS) <= 0)
			log_fatal("the monitor opens no file");
		n = seqpacket_recv(
		    CONTROL_FD, packet, sizeof(packet), fds, &nfds);
		if (n == 0 || (n < 0 && n != -EAGAIN)) {
			log_error((int)n, "the monitor is gone");
			orders_end();
		}
		if (n > 0)
			err = take_cast(packet, (size_t)n, fds, nfds);
	}
	return err;
}
