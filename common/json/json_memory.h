/* SPDX-License-Identifier: ISC */
/*
 * Memory for yajl, which does not check its allocations for failure.
 */
#pragma once

#include <yajl/yajl_common.h>

/* Without memory the program ends, as in util.h. */
extern const yajl_alloc_funcs json_memory;
