/* SPDX-License-Identifier: ISC */
/*
 * Versions of the control channels. The first message of each side carries the
 * version of its channel, right after the type. control_put() writes it, and
 * control_get() refuses versions that this program does not understand.
 *
 * No broker outlives an upgrade, but runners do. A broker therefore speaks with
 * all runners from RUNNER_OLDEST on. CONFIGURE and AUDIT go to a runner of the
 * same release, and may change freely. A change to any other message needs
 * three steps: raise RUNNER_VERSION, keep the old layout beside the new one,
 * and make the session remember the version of its runner. A unit test compares
 * the layouts with a checksum for the version.
 *
 * The other channels connect programs that are started together. Their versions
 * are raised with any change, except for rows of frontend_keys.def: a row more
 * or less changes the length of a message, which is refused, too.
 */
#pragma once

#define SPAWN_VERSION 7 /* broker and root; in each message */
/* broker and front-end; also the front-end's helpers */
#define FRONTEND_VERSION 13
/* broker and runner; 2: RUNNER_EVENT_NETWORK; 3: enum control_reach, whose
 * first two values are the boolean of before; 4: RUNNER_EVENT_KEEP,
 * RUNNER_EVENT_LIST, RUNNER_EVENT_LIMITED, and PROBE, ATTACH_PROXIED and TOKEN,
 * of which an older runner is told nothing; 5: SANDBOX comes again with a new
 * broker; RUNNER_EVENT_REDIRECTS; RUNNER_EVENT_COMMANDS */
#define RUNNER_VERSION 5
#define RUNNER_OLDEST  1
/* Below this a runner gets neither PROBE nor ATTACH_PROXIED. */
#define RUNNER_PROBES 4
/* A runner of an older version gets SANDBOX once, as it began, and is not asked
 * whether it answers (PROBE with the number 0), nor for its commands. */
#define RUNNER_LIMITS 5
