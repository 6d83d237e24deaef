/* SPDX-License-Identifier: ISC */
/*
 * Which of some names was meant by one that does not exist. Pure.
 */
#pragma once

struct nearest {
	const char *given, *name; /* borrowed; name is NULL: none is near */
	unsigned int edits;	  /* between both, if there is a name */
};

/* Looks at one more name. It is kept if it is nearer than those before: at most
 * two letters are wrong, missing, too many or exchanged. */
void nearest_try(struct nearest *n, const char *name);
