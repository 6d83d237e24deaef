/* SPDX-License-Identifier: ISC */
/* What execd doctor says of the programs of execd. */
#pragma once

/* Says which programs are of another version than the running one, as after
 * half an upgrade. Their files are read, which only their owner may. */
void doctor_programs_print(void);
