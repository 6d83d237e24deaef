/* SPDX-License-Identifier: ISC */
/*
 * A row of the table of methods. Who holds a request until later, or records
 * it, knows the row; only methods.c knows all of them.
 */
#ifndef RPC_METHOD_H
#define RPC_METHOD_H

#include "params.h"
#include "session.h"

struct request;

/* Acts on decoded, permitted parameters and answers. 0, or RPC_PENDING when
 * the answer comes later (the handler took the id). */
typedef int method_fn(struct request *r, const union method_params *p);

/* What a file method does with the disk. */
enum file_use {
	FILE_READS,   /* names, metadata or content */
	FILE_CHANGES, /* anything */
	FILE_OPENS,   /* a handle: its mode says which of the two */
	FILE_HANDLE,  /* within what a handle was opened for */
	FILE_CLOSES,  /* a handle */
};

struct rpc_method {
	const char *name;
	enum method_family family;
	unsigned when; /* session_state mask */
	params_fn *params;
	method_fn *method; /* NULL: a helper's */
	enum helper_kind helper;
	enum file_use use; /* of HELPER_FILES */
};

#endif
