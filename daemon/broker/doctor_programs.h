/* SPDX-License-Identifier: ISC */
/* What execd doctor and a start say of the programs of execd. */
#pragma once

/* Says which programs are of another version than the running one, as after
 * half an upgrade. Their files are read, which only their owner may. */
void doctor_programs_print(void);

/* Whoever may read a program may look into what runs it as his user (execve(2),
 * PR_SET_DUMPABLE). Warns of such programs, for a broker of root's. */
void doctor_programs_warn(void);
