/* SPDX-License-Identifier: ISC */
/*
 * What the load client wants of a server's message: members by name, in any
 * order, wherever they stand. It skips over the rest without copying or
 * checking it, so that the client costs little beside the server; protocol/
 * has the parser that checks.
 */
#pragma once

#include "base.h"

/* Slices point into the text, as they are written there: escapes and all. */
struct message {
	int64_t id; /* -1: a notification */
	bool is_error;
	struct slice method;
	struct slice process_id;
	struct slice chunk;  /* of process/output, base64 */
	struct slice data;   /* of fs/readFile, base64 */
	struct slice status; /* of process/write */
	struct slice error;  /* its text */
	int64_t exit_code;   /* of process/exited */
};

/* 0, or -EBADMSG: this is no JSON object. */
int message_scan(struct message *m, const char *text, size_t len);

bool message_is(const struct message *m, const char *method);

/* Bytes that a base64 text stands for. */
size_t message_decoded_len(struct slice base64);
