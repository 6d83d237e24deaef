/* SPDX-License-Identifier: ISC */
/*
 * For the tests of params: a method by its name on the wire, and its params
 * decoded from text as they come in a message.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "params.h"

static const struct method_row {
	const char *wire;
	params_fn *decode;
	enum method_family family;
} methods[] = {
#define METHOD(name, wire, family, when, repeat)                               \
	{ wire, params_##name, FAMILY_##family },
#define FILE_METHOD(name, wire, family, use, repeat)                           \
	{ wire, params_##name, FAMILY_##family },
#define HTTP_METHOD(name, wire) { wire, params_##name, FAMILY_HTTP },
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD
};

static inline const struct method_row *
find_method(const char *wire)
{
	for (size_t i = 0; i < nitems(methods); i++)
		if (strcmp(methods[i].wire, wire) == 0)
			return &methods[i];
	fail_msg("no method %s", wire);
	return NULL;
}

/* A message in memory of exactly its size, and what came out of it. */
struct decoded {
	char *text;
	struct rpc_message message;
	union method_params params;
	char error[ARGS_ERROR_MAX];
};

/* `params` as JSON text, NULL: absent. Returns what params_NAME() says; end
 * with decoded_clear(). */
static inline int
decode_params(struct decoded *d, const char *wire, const char *params)
{
	char *text = params ? xasprintf("{\"id\":1,\"method\":\"%s\","
					"\"params\":%s}",
				  wire, params)
			    : xasprintf("{\"id\":1,\"method\":\"%s\"}", wire);
	size_t len = strlen(text);

	d->text = xmalloc(len);
	memcpy(d->text, text, len);
	free(text);
	d->error[0] = '\0';
	/* What is not set must be seen. */
	memset(&d->params, 0x5a, sizeof(d->params));
	if (rpc_parse(&d->message, d->text, len) != 0)
		fail_msg("%s: %s", params, d->message.doc.error);
	return params_decode(
	    find_method(wire)->decode, &d->message, &d->params, d->error);
}

static inline void
decoded_clear(struct decoded *d)
{
	rpc_message_clear(&d->message);
	free(d->text);
}
