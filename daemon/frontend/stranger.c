/*
 * Lines of the log about those who never came in.
 */
#include "stranger.h"

#include "log.h"
#include "util.h"

#define LINES_PER_SECOND 50

bool
stranger_may_log(void)
{
	static int64_t second_ms;
	static unsigned lines, left_out;
	int64_t now = now_ms();

	if (now - second_ms >= 1000) {
		if (left_out > 0)
			log_warn(0,
			    "%u lines about failed connections were left out",
			    left_out);
		second_ms = now;
		lines = left_out = 0;
	}
	if (lines < LINES_PER_SECOND) {
		lines++;
		return true;
	}
	left_out++;
	return false;
}
