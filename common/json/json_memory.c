/* SPDX-License-Identifier: ISC */
#include "json_memory.h"

#include "util.h"

static void *
get(void *arg, size_t size)
{
	return xmalloc(size);
}

static void *
resize(void *arg, void *p, size_t size)
{
	return xreallocarray(p, 1, size);
}

static void
give_back(void *arg, void *p)
{
	free(p);
}

const yajl_alloc_funcs json_memory = {
	.malloc = get,
	.realloc = resize,
	.free = give_back,
};
