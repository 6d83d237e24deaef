/* SPDX-License-Identifier: ISC */
/* log.h for programs of Windows: lines on standard error. */
#include "base.h"

static const char *name = "execd-runner";

void
log_init(const char *program, enum log_level level)
{
	name = program;
}

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
		fprintf(stderr, "%s: %s: %s\n", name, text, strerror(-err));
	else
		fprintf(stderr, "%s: %s\n", name, text);
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
