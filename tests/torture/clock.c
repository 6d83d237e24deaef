/* SPDX-License-Identifier: ISC */
/*
 * Preloaded: CLOCK_REALTIME is ten years ahead as long as the file exists that
 * CLOCK_JUMP names. Deadlines must not mind.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define JUMP_S (10 * 365 * 86400L)

static const char *file;

static void __attribute__((constructor)) set_up(void)
{
	file = getenv("CLOCK_JUMP");
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int err = (int)syscall(SYS_clock_gettime, id, ts);

	if (err == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) &&
	    file != NULL && access(file, F_OK) == 0)
		ts->tv_sec += JUMP_S;
	return err;
}

time_t
time(time_t *t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (t != NULL)
		*t = ts.tv_sec;
	return ts.tv_sec;
}
