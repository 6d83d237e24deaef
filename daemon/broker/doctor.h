/* SPDX-License-Identifier: ISC */
/*
 * execd doctor: which layers of a sandbox this host can enforce, one line for
 * each, and what to change where it cannot. It tries each layer.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

struct path_map;
struct programs;

/* Prints to standard output. As root, `user` is the user of the commands, or
 * NULL. Tells of each root of the map what it leads to. Returns an enum
 * exit_code: EXIT_UNENFORCEABLE if a layer is missing that every sandbox needs.
 */
int doctor_run(
    const struct programs *p, const char *user, const struct path_map *map);

#endif
