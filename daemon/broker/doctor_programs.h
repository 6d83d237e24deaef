/* SPDX-License-Identifier: ISC */
/* What execd doctor says of the programs of execd. */
#ifndef DOCTOR_PROGRAMS_H
#define DOCTOR_PROGRAMS_H

/* Says which programs are of another version than the running one, as after
 * half an upgrade. Their files are read, which only their owner may. */
void doctor_programs_print(void);

#endif
