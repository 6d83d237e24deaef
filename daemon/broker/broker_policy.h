/* SPDX-License-Identifier: ISC */
/*
 * The confinement of the serving broker. It has read its configuration and
 * opened what it needs. From now on it never executes a program, looks into
 * another process or connects to anything. If somebody takes it over, he cannot
 * start a second broker, which root would take for a fresh one.
 */
#ifndef BROKER_POLICY_H
#define BROKER_POLICY_H

/* Confines this process for the rest of its life, and its children. If there is
 * no Landlock or a container's profile refuses it, there is only the filter,
 * and this is logged. Returns 0 or -errno. */
int broker_policy_load(void);

#endif
