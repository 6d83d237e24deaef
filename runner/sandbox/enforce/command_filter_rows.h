/* SPDX-License-Identifier: ISC */
/*
 * The table of calls that commands may not make. Only command_filter.c uses it.
 */
#ifndef COMMAND_FILTER_ROWS_H
#define COMMAND_FILTER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "command_filter.h"

/* When a row applies. Exactly one of NO_SOCKETS to IP_AND_UNIX is active. */
enum {
	ALWAYS = 1 << 0,
	NO_SETID = 1 << 1,
	NO_USERNS = 1 << 2,
	WITH_32BIT = 1 << 3,
	NO_SOCKETS = 1 << 4,  /* network restricted */
	ONLY_LOCAL = 1 << 5,  /* restricted, UNIX sockets permitted */
	ONLY_IP = 1 << 6,     /* network enabled */
	IP_AND_UNIX = 1 << 7, /* enabled, all UNIX sockets */
	NO_VIEW = 1 << 8,     /* no namespaces either */
	NO_CHMOD = 1 << 9,
	NO_PTRACE = 1 << 10,
	NO_SETGID = 1 << 11, /* not even on directories */
	NETWORK = ONLY_IP | IP_AND_UNIX,
};

struct compare {
	unsigned argument;
	uint32_t mask; /* 0: no comparison */
	bool none_of;  /* matches if none of the values is equal */
	unsigned n;
	uint32_t values[4];
};

struct row {
	int call;
	int error;
	unsigned when;
	bool by_number;
	struct compare compares[2]; /* all must match; none_of comes last */
};

extern const struct row command_filter_rows[];
extern const size_t command_filter_nrows;

/* Returns the mask of the rows that apply. */
unsigned command_filter_active(const struct command_filter_options *o);

#endif
