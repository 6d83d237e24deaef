/* SPDX-License-Identifier: ISC */
/*
 * Files for recordings of terminals.
 */
#include "session_cast.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "monitor.h"
#include "session_audit.h"
#include "util.h"

/* Of one session, ever: names in a directory are not for nothing. */
#define RECORDINGS_MAX 4096

int
session_recording_check(const char *directory, char *why)
{
	struct stat st;

	if (stat(directory, &st) < 0)
		return conf_refuse(
		    why, "record-tty: %.200s: %s", directory, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return conf_refuse(
		    why, "record-tty: %.200s is no directory", directory);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return conf_refuse(why,
		    "record-tty: %.200s belongs to another user", directory);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return conf_refuse(why,
		    "record-tty: %.200s can be written by others", directory);
	if (access(directory, W_OK | X_OK) < 0)
		return conf_refuse(
		    why, "record-tty: %.200s: %s", directory, strerror(errno));
	return 0;
}

/* DIRECTORY/20261121T120000Z-SESSION-NUMBER.cast */
static char *
make_path(const struct session *s)
{
	time_t now = time(NULL);
	char date[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
	return xasprintf("%s/%s-%.*s-%u.cast", s->identity->record.directory,
	    date, ID_LOG_CHARS, s->id, s->runner.recordings);
}

static int
open_file(struct session *s, const char *path)
{
	int fd;

	if (s->runner.recordings > RECORDINGS_MAX)
		return -EDQUOT;
	fd = open(path,
	    O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
	    0600);
	return fd < 0 ? -errno : fd;
}

int
session_recording_event(
    struct broker *m, struct session *s, const uint8_t *packet, size_t len)
{
	struct control_recording_file answer = { 0 };
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	struct control_recording_wanted ask;

	if (s->identity->record.directory == NULL ||
	    control_get(packet, len, RUNNER_EVENT_RECORDING_FILE, &ask) < 0)
		return -EBADMSG;
	s->runner.recordings++;
	path = make_path(s);
	fd = open_file(s, path);
	if (fd < 0) {
		log_error(fd, "session %.*s: %s", ID_LOG_CHARS, s->id, path);
		answer.error = (uint32_t)-fd;
	}
	session_order(s, RUNNER_COMMAND_RECORDING_FILE, &answer, &fd, fd >= 0);
	return fd < 0 ? 0 : session_audit_recorded(m, s, ask.process, path);
}
