/* SPDX-License-Identifier: ISC */
/*
 * json, jsonrpc: what parses, written out, parses to the same tree and means
 * the same message; what does not says why. An id survives its echo.
 */
#include "json_tree.h"
#include "jsonrpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A number that is both unsigned and signed is one number. */
static void
check_values(const struct json_value *v)
{
	int64_t i;
	uint64_t u;

	if (json_to_u64(v, &u) == 0 && u <= INT64_MAX)
		assert(json_to_i64(v, &i) == 0 && (uint64_t)i == u);
	for (v = v->first; v != NULL; v = v->next)
		check_values(v);
}

static void
check_echo(const struct json_value *id)
{
	struct rpc_message m;
	struct rpc_id copy;
	struct json_writer w;
	struct buf b;

	rpc_id_copy(&copy, id);
	buf_init(&b, JSON_TREE_BYTES);
	json_writer_init(&w, &b);
	rpc_write_error(&w, &copy, RPC_MALFORMED, "a\"b", 3);
	assert(rpc_parse(&m, (const char *)b.data, b.len) == 0);
	assert(m.kind == RPC_KIND_RESPONSE);
	assert(json_get(m.doc.root, "id")->type == id->type);
	assert(slice_equal(json_get(m.doc.root, "id")->text,
	    id->type == JSON_NUMBER && slice_equal(id->text, SLICE("-0"))
		? SLICE("0")
		: id->text));
	rpc_message_clear(&m);
	rpc_id_clear(&copy);
	buf_clear(&b);
}

static void
check_again(const struct rpc_message *m)
{
	struct rpc_message again;
	struct buf b;

	json_tree_text(&b, m->doc.root);
	assert(rpc_parse(&again, (const char *)b.data, b.len) == 0);
	json_tree_compare(m->doc.root, again.doc.root);
	assert(again.kind == m->kind && slice_equal(again.method, m->method));
	assert((again.params == NULL) == (m->params == NULL));
	rpc_message_clear(&again);
	buf_clear(&b);
}

static void
check_message(struct rpc_message *m)
{
	assert((m->kind == RPC_KIND_NOTIFICATION) == (m->id == NULL));
	assert(m->doc.root->type == JSON_OBJECT);
	check_values(m->doc.root);
	check_again(m);
	if (m->id != NULL)
		check_echo(m->id);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct rpc_message m;
	int err = rpc_parse(&m, (const char *)data, len);

	if (err < 0)
		check_error(m.doc.error, sizeof(m.doc.error));
	else
		check_message(&m);
	rpc_message_clear(&m);
	return 0;
}
