/* SPDX-License-Identifier: ISC */
/*
 * The memory of yajl, which does not look whether it got any.
 */
#ifndef JSON_MEMORY_H
#define JSON_MEMORY_H

#include <yajl/yajl_common.h>

/* Without it the program ends, as it does everywhere else (util.h). */
extern const yajl_alloc_funcs json_memory;

#endif
