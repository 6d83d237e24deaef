/* SPDX-License-Identifier: ISC */
/* log.h for the runner on Windows: lines on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"

static void
line(int err, const char *fmt, va_list ap)
{
	char text[1024];
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	/* No peer can forge a line. */
	for (int i = 0; i < n && text[i] != '\0'; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
	if (err != 0)
		fprintf(stderr, "execd-runner: %s: %s\n", text, strerror(-err));
	else
		fprintf(stderr, "execd-runner: %s\n", text);
	fflush(stderr);
}

void
log_at(enum log_level level, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(err, fmt, ap);
	va_end(ap);
}

void
log_fatal_errno(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line(err, fmt, ap);
	va_end(ap);
	exit(1);
}
