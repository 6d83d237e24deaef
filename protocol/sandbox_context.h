/*
 * The client's portable sandbox intent, decoded and validated (SANDBOX.md
 * part A). Pure: binds nothing, looks at no disk.
 */
#ifndef SANDBOX_CONTEXT_H
#define SANDBOX_CONTEXT_H

#include "args.h"

/* Only whether anything is asked for is decoded so far; a context that asks
 * for enforcement is refused by those who cannot enforce it. */
struct sandbox_context {
	bool unrestricted; /* nothing at all is asked to be enforced */
};

/* Decodes v into *out; errors are a's. */
void sandbox_context_decode(
    struct args *a, const struct json_value *v, struct sandbox_context *out);

#endif
