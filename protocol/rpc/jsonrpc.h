/* SPDX-License-Identifier: ISC */
/*
 * The JSON-RPC envelope (doc/protocol.md section 2): request, notification,
 * response. A "jsonrpc" member is neither required nor sent. There are no
 * batches.
 */
#pragma once

#include <stddef.h>

#include "json.h"

enum rpc_code {
	RPC_MALFORMED = -32600, /* also: wrong state, or refused */
	RPC_UNKNOWN_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603, /* also: operating-system errors */
	RPC_NOT_FOUND = -32004,
	RPC_ATTACHED = -32010, /* attached to another connection */
};

enum rpc_kind {
	RPC_KIND_REQUEST,
	RPC_KIND_NOTIFICATION,
	RPC_KIND_RESPONSE, /* result or error */
};

/* A parsed message. Its slices point into the text or the tree. */
struct rpc_message {
	struct json_doc doc;
	enum rpc_kind kind;
	const struct json_value *id; /* not of RPC_KIND_NOTIFICATION */
	struct slice method;
	const struct json_value *params; /* NULL: absent */
};

/* Parses a message. Returns 0, or -EBADMSG with doc.error set to the DETAIL of
 * doc/protocol.md section 2.3. In both cases the caller ends with
 * rpc_message_clear(). */
int rpc_parse(struct rpc_message *m, const char *text, size_t len);
void rpc_message_clear(struct rpc_message *m);

/*
 * A copy of a request id that outlives its message: the JSON text as it is sent
 * back. rpc_id_clear() frees it. The answer to a malformed message has the id
 * -1.
 */
struct rpc_id {
	char *text; /* owned; NULL: none */
	size_t len;
};
void rpc_id_copy(struct rpc_id *id, const struct json_value *v);
void rpc_id_clear(struct rpc_id *id);

/*
 * Writing. After rpc_begin_result() the caller writes the result value, and
 * rpc_end_result() ends the message. The id is written as it was received; NULL
 * writes -1.
 *	{"id":7,"result":VALUE}
 *	{"error":{"code":-32600,"message":"..."},"id":7}
 *	{"error":{"code":-32603,"message":"...","data":{"kind":"..."}},"id":7}
 *	{"method":"process/exited","params":VALUE}
 *	{"id":1,"method":"network/policyRequest","params":VALUE}
 */
void rpc_begin_result(struct json_writer *w, const struct rpc_id *id);
void rpc_end_result(struct json_writer *w);
void rpc_write_error(struct json_writer *w, const struct rpc_id *id, int code,
    const char *message, size_t len);
void rpc_write_error_kind(struct json_writer *w, const struct rpc_id *id,
    int code, const char *kind, const char *message, size_t len);
void rpc_begin_notification(struct json_writer *w, const char *method);
void rpc_end_notification(struct json_writer *w);
void rpc_begin_request(struct json_writer *w, uint64_t id, const char *method);
void rpc_end_request(struct json_writer *w);

/*
 * Looks at the beginning of a long message to find out what it asks for, and
 * where its long string begins. The result is only a hint: the whole message
 * without that string is parsed by json.c later.
 */

/*
 * Returns the offset of the first byte of the string params.KEY, after its
 * quote. The message must have the `method` METHOD before its params. Returns 0
 * if `text` does not reach that far, if it is another message, or if a key or
 * the method is written with escapes.
 */
size_t rpc_find_string(
    const char *text, size_t len, const char *method, const char *key);
