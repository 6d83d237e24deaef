/*
 * An identity on its way to the starter: control_start, and a list of what has
 * no fixed length. In the list, as buf.h writes it: u32 count, as many u32
 * group ids, u32 count, as many strings of the environment.
 */
#ifndef STARTER_IDENTITY_H
#define STARTER_IDENTITY_H

#include "control.h"
#include "identity.h"

/* All but the session's id. */
void starter_identity_fill(struct control_start *s, const struct identity *id);

/* A descriptor to its list, the caller's, or -errno: -E2BIG over 4 MiB. */
int starter_identity_list(const struct identity *id);

/* What a runner needs to know of it; one reference, the caller's. NULL: this
 * cannot be the monitor's. The descriptor stays the caller's. */
struct identity *starter_identity(const struct control_start *s, int list);

#endif
