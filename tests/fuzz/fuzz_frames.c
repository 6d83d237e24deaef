/* SPDX-License-Identifier: ISC */
/*
 * frames: what parses keeps the promises of frames.h, what does not
 * says why; what execd itself writes is JSON of the dialect.
 */
#include "base64.h"
#include "frames.h"
#include "json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool
is_absolute(struct slice path)
{
	return path.len > 0 && path.ptr[0] == '/';
}

static void
check_strings(const struct json_value *list, enum json_type type)
{
	assert(list != NULL && list->type == type);
	for (const struct json_value *v = list->first; v != NULL; v = v->next)
		assert(v->type == JSON_STRING);
}

static void
check_spawn(const struct frames_spawn *s)
{
	check_strings(s->command, JSON_ARRAY);
	check_strings(s->env, JSON_OBJECT);
	assert(s->command->count > 0);
	assert(s->cwd.len > 0 && s->cwd.ptr[0] == '/');
	assert(memchr(s->cwd.ptr, '\0', s->cwd.len) == NULL);
	assert(s->has_timeout || s->timeout_ms == 0);
	/* There is a policy, and one only. */
	assert((s->policy.len > 0) != (s->profile != NULL));
	if (s->profile == NULL)
		return;
	check_strings(s->roots, JSON_ARRAY);
	check_strings(s->cap_sids, JSON_ARRAY);
	assert(s->cap_sids->count > 0 && s->desktop.len > 0);
}

/* The bytes, written as output, are the text they came in as. */
static void
check_stdin(const struct frames_message *m)
{
	const struct json_value *text =
	    json_get(json_get(m->doc.root, "payload"), "data_b64");
	const struct json_value *payload;
	struct json_doc doc;
	struct json_writer w;
	struct buf b;

	buf_init(&b, JSON_TREE_BYTES);
	json_writer_init(&w, &b);
	frames_write_output(
	    &w, m->version, "stdout", m->stdin_bytes.ptr, m->stdin_bytes.len);
	assert(json_parse(&doc, (const char *)b.data, b.len) == 0);
	payload = json_get(doc.root, "payload");
	assert(json_is(json_get(doc.root, "type"), "output"));
	assert(slice_equal(json_get(payload, "data_b64")->text, text->text));
	json_clear(&doc);
	buf_clear(&b);
}

/* Our own complaint is one JSON value, whatever it quotes. */
static void
check_complaint(const char *error)
{
	struct json_doc doc;
	struct json_writer w;
	struct buf b;

	check_error(error, ARGS_ERROR_MAX);
	buf_init(&b, JSON_TREE_BYTES);
	json_writer_init(&w, &b);
	frames_write_error(&w, FRAMES_NEW,
	    &(struct frames_error){ .code = "protocol", .message = error });
	assert(json_parse(&doc, (const char *)b.data, b.len) == 0);
	assert(json_is(json_get(doc.root, "type"), "error"));
	json_clear(&doc);
	buf_clear(&b);
}

static void
check_again(const struct frames_message *m)
{
	struct frames_message again;
	char error[ARGS_ERROR_MAX];
	struct buf b;

	json_tree_text(&b, m->doc.root);
	assert(frames_parse(&again, is_absolute, (const char *)b.data, b.len,
		   error) == 0);
	assert(again.type == m->type);
	assert(again.spawn.timeout_ms == m->spawn.timeout_ms);
	assert(slice_equal(again.stdin_bytes, m->stdin_bytes));
	frames_clear(&again);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct frames_message m;
	char error[ARGS_ERROR_MAX];
	int err;

	memset(error, 'x', sizeof(error));
	err = frames_parse(&m, is_absolute, (const char *)data, len, error);
	if (err < 0)
		check_complaint(error);
	else
		check_again(&m);
	if (err == 0 && m.type == FRAMES_SPAWN_REQUEST)
		check_spawn(&m.spawn);
	if (err == 0 && m.type == FRAMES_STDIN)
		check_stdin(&m);
	frames_clear(&m);
	return 0;
}
