/* SPDX-License-Identifier: ISC */
/*
 * Asks the broker for the file of a terminal's recording. The runner waits for
 * the answer; other commands of the broker that arrive meanwhile are put off.
 */
#include "commands_parts.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "audit_text.h"
#include "heap.h"
#include "log.h"
#include "queue.h"
#include "seqpacket.h"
#include "util.h"

/* A command that came during the wait; it is taken next. */
struct stashed_order {
	STAILQ_ENTRY(stashed_order) link; /* stash */
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds, len;
	uint8_t packet[];
};
static STAILQ_HEAD(, stashed_order) stash = STAILQ_HEAD_INITIALIZER(stash);
static unsigned stashed;

/* More than the broker sends in such a short time. */
#define STASH_MAX 1024

#define ERRNO_MAX 4095

void
commands_take_stashed_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stashed_order *o;

	while ((o = STAILQ_FIRST(&stash)) != NULL) {
		STAILQ_REMOVE_HEAD(&stash, link);
		stashed--;
		commands_take(o->packet, o->len, o->fds, o->nfds);
		free(o);
	}
}

static void
put_off(const uint8_t *packet, size_t len, const int *fds, size_t nfds)
{
	struct stashed_order *o = xmalloc(sizeof(*o) + len);

	if (++stashed > STASH_MAX)
		log_fatal("the broker sent %d commands instead of an answer",
		    STASH_MAX);
	o->len = len;
	o->nfds = nfds;
	memcpy(o->packet, packet, len);
	memcpy(o->fds, fds, nfds * sizeof(int));
	if (STAILQ_EMPTY(&stash) &&
	    event_base_once(commands_base, -1, EV_TIMEOUT,
		commands_take_stashed_cb, NULL, &(struct timeval){ 0, 0 }) < 0)
		log_fatal("commands put off: no event");
	STAILQ_INSERT_TAIL(&stash, o, link);
}

/*
 * Receives one packet into the caller's buffers. Returns its length, or 0 if
 * there was none. The broker never waits for a runner, so this wait is bounded
 * too.
 */
static size_t
hear(uint8_t packet[CONTROL_MESSAGE_MAX], int *fds, size_t *nfds)
{
	struct pollfd in = { .fd = CONTROL_FD, .events = POLLIN };
	ssize_t n;

	if (poll(&in, 1, REPORT_WAIT_MS) <= 0)
		log_fatal("the broker does not answer");
	n = seqpacket_recv(CONTROL_FD, packet, CONTROL_MESSAGE_MAX, fds, nfds);
	if (n == 0 || (n < 0 && n != -EAGAIN)) {
		log_error((int)n, "the broker is gone");
		commands_end();
	}
	return n > 0 ? (size_t)n : 0;
}

uint32_t commands_recordings;

static void
ask_for_recording(const struct control_recording_wanted *ask)
{
	commands_recordings++;
	commands_report(RUNNER_EVENT_RECORDING_FILE, ask);
}

/*
 * Waits for the answer and its descriptors. If the broker ended before it
 * answered, the next broker is asked again.
 */
static void
wait_for_recording(const struct control_recording_wanted *ask,
    struct control_recording_file *answer, int *fds, size_t *nfds)
{
	const enum control_type type = RUNNER_COMMAND_RECORDING_FILE;

	static heap_aligned uint8_t packet[CONTROL_MESSAGE_MAX];

	for (;;) {
		size_t len = hear(packet, fds, nfds);

		if (len > 0 && control_peek(packet, len) == type) {
			if (control_get(packet, len, type, answer) < 0)
				commands_impossible(type);
			return;
		}
		if (len > 0 &&
		    control_peek(packet, len) == RUNNER_COMMAND_IDENTIFY) {
			commands_take(packet, len, fds, *nfds);
			ask_for_recording(ask);
		} else if (len > 0) {
			put_off(packet, len, fds, *nfds);
		}
	}
}

int
commands_open_recording(struct slice process)
{
	struct control_recording_wanted ask = { 0 };
	struct control_recording_file file;
	int fds[SEQPACKET_FDS_MAX];
	size_t nfds;

	audit_copy_id(ask.process, process);
	ask_for_recording(&ask);
	wait_for_recording(&ask, &file, fds, &nfds);
	if (nfds != (file.error == 0) || file.error > ERRNO_MAX)
		commands_impossible(RUNNER_COMMAND_RECORDING_FILE);
	return file.error == 0 ? fds[0] : -(int)file.error;
}
