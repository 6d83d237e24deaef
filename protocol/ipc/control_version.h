/* SPDX-License-Identifier: ISC */
/*
 * Versions of the control channels. The first message of each side begins with
 * the version of its channel, right behind the type; control_put() writes it,
 * and control_get() refuses what this program does not speak.
 *
 * A broker outlives no upgrade, but runners do: a broker speaks to all runners
 * from RUNNER_OLDEST on. Whoever changes a message that a runner gets or sends
 * after CONFIGURE raises RUNNER_VERSION, keeps the layout of the version before
 * beside the new one, and lets the session remember what its runner speaks. A
 * unit test compares the layouts with a number that belongs to the version.
 *
 * The other channels connect programs that are started together; their versions
 * are raised with any change.
 */
#ifndef CONTROL_VERSION_H
#define CONTROL_VERSION_H

#define SPAWN_VERSION	 1 /* broker and root */
#define FRONTEND_VERSION 1 /* broker and front-end, and its helpers */
#define RUNNER_VERSION	 1 /* broker and runner */
#define RUNNER_OLDEST	 1

#endif
