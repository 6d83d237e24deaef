/* SPDX-License-Identifier: ISC */
/*
 * A row of the table of methods. Files that hold a request until later, or
 * record it, know a row; only methods.c knows the whole table.
 */
#pragma once

#include "params.h"
#include "session.h"

/*
 * Acts on decoded, permitted parameters and answers. Returns 0, or RPC_PENDING
 * when the answer comes later; then the handler took the id.
 */
typedef int method_fn(struct request *r, const union method_params *p);

/* What a file method does with the disk. */
enum file_use {
	FILE_READS,   /* names, metadata or content */
	FILE_CHANGES, /* names, metadata or content */
	FILE_OPENS,   /* a handle; its mode tells reading from changing */
	FILE_HANDLE,  /* uses a handle within what it was opened for */
	FILE_CLOSES,  /* closes a handle */
};

struct rpc_method {
	const char *name;
	enum method_family family;
	unsigned when; /* mask of session_state */
	params_fn *params;
	method_fn *method; /* NULL: a helper serves it */
	enum helper_kind helper;
	enum file_use use; /* for HELPER_FILES */
};
