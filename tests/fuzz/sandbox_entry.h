/* SPDX-License-Identifier: ISC */
/*
 * What an entry of a sandbox context promises, however the context came to be.
 */
#pragma once

#include "json_tree.h"
#include "sandbox_context.h"

static inline void
check_entry(const struct sandbox_entry *e)
{
	assert(e->access >= SANDBOX_READ && e->access <= SANDBOX_DENY);
	assert(e->kind >= SANDBOX_PATH && e->kind <= SANDBOX_SPECIAL);
	assert(e->special >= SANDBOX_ROOT && e->special <= SANDBOX_UNKNOWN);
	if (e->kind == SANDBOX_PATH)
		check_path(&e->path);
	if (e->kind == SANDBOX_GLOB)
		assert(e->text.ptr != NULL);
	assert(
	    e->text.len == 0 || memchr(e->text.ptr, '\0', e->text.len) == NULL);
}
