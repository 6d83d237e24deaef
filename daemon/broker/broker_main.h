/* SPDX-License-Identifier: ISC */
/*
 * What main() of execd-broker calls here.
 *
 * The broker: one loop over signals, the front-end and the runners. It parses
 * no byte of a client. It trusts only numbers that it made.
 */
#pragma once

#include "base.h"

struct broker;
struct broker_events;

/* What the parts report to the loop. */
extern const struct broker_events broker_events;

/* Runs until it is told to stop. Returns an enum exit_code. */
int broker_run(struct broker *m);

/* --- account_main.c ------------------------------------------------------ */

/* execd-broker --account. Returns its exit code. */
int account_main(char *name, const char *user);

/* --- keeper.c ------------------------------------------------------------ */

/*
 * Where systemd starts the broker in a unit of its own, a process that hears
 * nobody keeps it, and starts another one for a reload, and after a crash.
 */

/* Tells whether this process is a broker that is kept so. */
bool keeper_found(void);

/* Starts the broker with these arguments, and others for reloads. Returns only
 * an enum exit_code of a failure; it ends as the last broker ends. */
int keeper_run(char **argv);

/* In the broker: what root's execd is to know of it, enum begin_flag. */
uint32_t keeper_flags(void);

/* In the broker: asks for another one. */
void keeper_ask_reload(void);

/* In the broker: it serves, so this program can be the next one's fallback. */
void keeper_tell_serving(void);

/* --- broker_policy.c ---------------------------------------------------- */

/*
 * The confinement of the serving broker. It has read its configuration and
 * opened what it needs. From now on it never executes a program, looks into
 * another process or connects to anything. If somebody takes it over, he cannot
 * start a second broker, which root would take for a fresh one.
 */

/* Confines this process for the rest of its life, and its children. If there is
 * no Landlock or a container's profile refuses it, there is only the filter,
 * and this is logged. Returns 0 or -errno. */
int broker_policy_load(void);

/* --- doctor.c ----------------------------------------------------------- */

/*
 * execd doctor: which layers of a sandbox this host can enforce, one line for
 * each, and what to change where it cannot. It tries each layer.
 */

struct path_map;
struct programs;

/* Prints to standard output. As root, `user` is the user of the commands, or
 * NULL. Tells of each root of the map what it leads to. Returns an enum
 * exit_code: EXIT_UNENFORCEABLE if a layer is missing that every sandbox needs.
 */
int doctor_run(
    const struct programs *p, const char *user, const struct path_map *map);

/* --- doctor_groups.c ---------------------------------------------------- */

/*
 * What doctor says of control groups. If an execd runs here, it knows better
 * than a try in another place: systemd gave its unit a group, and the shell of
 * who calls doctor has another. Otherwise doctor makes the groups that a
 * session would have, in the place where it was started.
 */

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
