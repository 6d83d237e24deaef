/* SPDX-License-Identifier: ISC */
/*
 * <sys/queue.h> and TAILQ_FOREACH_SAFE, which glibc does not have.
 */
#pragma once

#include <sys/queue.h>

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, tvar)                             \
	for ((var) = TAILQ_FIRST(head);                                        \
	     (var) != NULL && ((tvar) = TAILQ_NEXT(var, field), 1);            \
	     (var) = (tvar))
#endif
