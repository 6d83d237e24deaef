/* SPDX-License-Identifier: ISC */
/*
 * Names of values in messages, for logs, metrics and clients.
 */
#include "control.h"

#include <assert.h>

#include "util.h"

const char *
control_verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_GRANTED] = "granted",
		[VERDICT_MISSING_TOKEN] = "missing websocket bearer token",
		[VERDICT_INVALID_HEADER] = "invalid authorization header",
		[VERDICT_INVALID_TOKEN] = "invalid websocket bearer token",
		[VERDICT_INVALID_JWT] = "invalid websocket jwt",
		[VERDICT_EXPIRED_JWT] = "expired websocket jwt",
		[VERDICT_EARLY_JWT] = "websocket jwt is not valid yet",
		[VERDICT_ISSUER] = "websocket jwt issuer mismatch",
		[VERDICT_AUDIENCE] = "websocket jwt audience mismatch",
		[VERDICT_BUSY] =
		    "the server has no room for another connection",
		[VERDICT_STRANGER] = "the client is not known here",
		[VERDICT_SUBJECT] =
		    "no identity has the subject of this websocket jwt",
	};

	return (size_t)verdict < nitems(names) ? names[verdict] : "";
}

_Static_assert(END_CAUSES <= METRICS_CAUSES_MAX, "metrics of every cause");

const char *
control_cause_name(unsigned cause)
{
	static const char *const names[END_CAUSES] = {
		[END_SIGNAL] = "signal",
		[END_CLIENT] = "client",
		[END_SESSION] = "session-end",
		[END_TIMEOUT] = "timeout",
		[END_COMMAND_DEADLINE] = "command-deadline",
		[END_MEMORY] = "memory",
		[END_CPU_TIME] = "max-cpu-time",
		[END_FILE_SIZE] = "max-file-size",
		[END_FILTER] = "sandbox",
		[END_RECORDING] = "record-tty",
	};

	return cause < END_CAUSES ? names[cause] : NULL;
}
