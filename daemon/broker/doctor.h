/* SPDX-License-Identifier: ISC */
/*
 * execd doctor: what this host can enforce on a sandboxed command, a line per
 * layer, and what to change where it cannot. It tries, it does not guess.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

struct programs;

/* Prints to stdout. user: whose commands they would be, for root; NULL: nobody.
 * Returns an enum exit_code: EXIT_UNENFORCEABLE when a layer is missing that no
 * sandbox goes without. */
int doctor_run(const struct programs *p, const char *user);

#endif
