/*
 * The client's portable sandbox intent, decoded and validated (SANDBOX.md
 * part A). Pure: binds nothing, looks at no disk.
 */
#ifndef SANDBOX_CONTEXT_H
#define SANDBOX_CONTEXT_H

#include "args.h"

/* Filled by the sandbox_context work; see SANDBOX.md A3 to A9. */
struct sandbox_context {
	bool unrestricted;	/* nothing at all is asked to be enforced */
};

#endif
