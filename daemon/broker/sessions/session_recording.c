/* SPDX-License-Identifier: ISC */
/*
 * Files for recordings of terminals.
 */
#include "session_recording.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "broker_state.h"
#include "log.h"
#include "session_audit.h"
#include "session_registry.h"
#include "spawn_client.h"
#include "util.h"

/* The most recordings of one session, ever, because each takes a name in a
 * directory. */
#define RECORDINGS_MAX 4096

/* Makes 20261121T120000Z-SESSION-NUMBER.cast. */
static char *
make_name(const struct session *s)
{
	time_t now = time(NULL);
	char date[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
	return xasprintf(
	    "%s-%.*s-%u.cast", date, ID_LOG_CHARS, s->id, s->runner.recordings);
}

static int
open_file(struct session *s, const char *name)
{
	if (s->runner.recordings > RECORDINGS_MAX)
		return -EDQUOT;
	return spawn_record(s->identity->record.number, name);
}

int
session_recording_event(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len)
{
	struct control_recording_file answer = { 0 };
	_cleanup_free_ char *name = NULL, *path = NULL;
	_cleanup_close_ int fd = -1;
	struct control_recording_wanted ask;
	int err = 0;

	if (s->identity->record.directory == NULL ||
	    control_get(packet, len, RUNNER_EVENT_RECORDING_FILE, &ask) < 0)
		return -EBADMSG;
	s->runner.recordings++;
	name = make_name(s);
	path = xasprintf("%s/%s", s->identity->record.directory, name);
	fd = open_file(s, name);
	if (fd < 0) {
		log_error(fd, "session %.*s: %s", ID_LOG_CHARS, s->id, path);
		answer.error = (uint32_t)-fd;
	}
	/* The record comes before the first byte that is recorded. */
	if (fd >= 0)
		err = session_audit_recorded(m, s, ask.process, path);
	session_send_command(
	    s, RUNNER_COMMAND_RECORDING_FILE, &answer, &fd, fd >= 0);
	return err;
}
