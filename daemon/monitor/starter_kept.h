/*
 * Identities that the starter knows already, each with its template of
 * runners: loading a program for every session costs more than all the rest of
 * its start.
 */
#ifndef STARTER_KEPT_H
#define STARTER_KEPT_H

#include "control.h"
#include "identity.h"

/* As starter_identity(), but the same one for the same order: kept until too
 * many others came. */
struct identity *starter_kept(const struct control_start *s, int list);

/* Templates that ended are reaped, and replaced when they are needed. */
void starter_kept_reap(void);

/* Ends all templates. */
void starter_kept_clear(void);

#endif
