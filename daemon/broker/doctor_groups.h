/* SPDX-License-Identifier: ISC */
/*
 * What doctor says of control groups. If an execd runs here, it knows better
 * than a try in another place: systemd gave its unit a group, and the shell of
 * who calls doctor has another. Otherwise doctor makes the groups that a
 * session would have, in the place where it was started.
 */
#ifndef DOCTOR_GROUPS_H
#define DOCTOR_GROUPS_H

/* Asks the execd that runs, or claims the group of this process. Prints of
 * which of the two the lines speak. */
void doctor_groups_begin(void);

/* Gives the claimed group back. */
void doctor_groups_end(void);

/* In a child of doctor's, since a limit may kill it: returns 0 if there are
 * groups, and if they hold `controller` (enum cgroup_controller; 0: none is
 * asked for), or an errno. */
int doctor_groups_try(unsigned controller);

/* What a line adds to its name: whose groups it speaks of. */
const char *doctor_groups_of(void);

/* Says what to do where there are no groups. The text is overwritten by the
 * next call. */
const char *doctor_groups_advise(int err);

#endif
