/* SPDX-License-Identifier: ISC */
/*
 * The confinement of the broker that serves. It has read its configuration and
 * opened what it needs, so it never executes a program, looks into another
 * process or connects to anything again. A broker that somebody has taken over
 * cannot start a second one, which root would take for a fresh one.
 */
#ifndef BROKER_POLICY_H
#define BROKER_POLICY_H

/* For the rest of this process's life, and for its children. Where there is no
 * Landlock, or a container's profile refuses it, the filter stands alone, and
 * the log says so. 0 or -errno. */
int broker_policy_load(void);

#endif
