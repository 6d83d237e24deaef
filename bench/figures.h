/* SPDX-License-Identifier: ISC */
/*
 * What was measured, written as the members of one JSON object on standard
 * output: NAME is a number, or for many of a kind {"n":, "p50":, "p99":}.
 */
#pragma once

#include "base.h"

/* Times in ns; zeroed is empty. */
struct figures {
	uint64_t *ns; /* owned */
	size_t n, cap;
};

void figures_add(struct figures *f, uint64_t ns);
void figures_clear(struct figures *f);

/* Nearest rank, 0 <= q <= 1, in microseconds; sorts. 0 of none. */
double figures_quantile_us(struct figures *f, double q);

/* The object grows by a member, and ends with its last line. */
void figures_show_us(const char *name, struct figures *f);
void figures_show(const char *name, double value);
void figures_end(void);
