/* SPDX-License-Identifier: ISC */
/*
 * params: the first line is a method's wire name, the rest its message. It
 * decodes, or says why; written out again it decodes to the same answer.
 */
#include "json_tree.h"
#include "params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct method {
	const char *wire;
	params_fn *decode;
	bool files;
} methods[] = {
#define METHOD(name, wire, family, when, repeat) { wire, params_##name, false },
#define FILE_METHOD(name, wire, family, use, repeat)                           \
	{ wire, params_##name, true },
#define HTTP_METHOD(name, wire) { wire, params_##name, false },
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD
};

/* The decoder's answer; its error text is checked and ended by the end of
 * its own allocation. */
static int
decode(const struct method *method, struct rpc_message *m,
    union method_params *p, char **error)
{
	int err;

	*error = xmalloc(ARGS_ERROR_MAX);
	memset(*error, 'x', ARGS_ERROR_MAX);
	memset(p, 0, sizeof(*p));
	err = params_decode(method->decode, m, p, *error);
	if (err < 0)
		check_error(*error, ARGS_ERROR_MAX);
	return err;
}

static void
check_params(const struct method *method, const union method_params *p)
{
	if (method->decode == params_process_start)
		check_path(&p->process_start.cwd);
	if (method->decode == params_process_write)
		assert(p->process_write.write_id.len > 0);
	if (method->decode == params_fs_chmod)
		assert(p->fs.mode <= FILE_MODE_MAX);
	if (method->decode == params_process_resize)
		assert(
		    p->process_resize.rows > 0 && p->process_resize.cols > 0);
	if (method->files && p->fs.path.uri.ptr != NULL)
		check_path(&p->fs.path);
	if (method->decode == params_fs_copy ||
	    method->decode == params_fs_move)
		check_path(&p->fs.destination);
}

static void
check_again(const struct method *method, const struct rpc_message *m, int err,
    const char *error)
{
	_cleanup_free_ char *again_error = NULL;
	struct rpc_message again;
	union method_params p;
	struct buf b;

	json_tree_text(&b, m->doc.root);
	assert(rpc_parse(&again, (const char *)b.data, b.len) == 0);
	assert(decode(method, &again, &p, &again_error) == err);
	assert(err == 0 || strcmp(error, again_error) == 0);
	rpc_message_clear(&again);
	buf_clear(&b);
}

static void
run(const struct method *method, struct rpc_message *m)
{
	_cleanup_free_ char *error = NULL;
	union method_params p;
	int err = decode(method, m, &p, &error);

	if (err == 0)
		check_params(method, &p);
	check_again(method, m, err, error);
}

static const struct method *
find_method(const char *wire, size_t len)
{
	for (size_t i = 0; i < nitems(methods); i++)
		if (strlen(methods[i].wire) == len &&
		    memcmp(methods[i].wire, wire, len) == 0)
			return &methods[i];
	return NULL;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *text = (const char *)data;
	const char *line = len > 0 ? memchr(text, '\n', len) : NULL;
	const struct method *method;
	struct rpc_message m;

	if (line == NULL)
		return 0;
	method = find_method(text, (size_t)(line - text));
	if (method == NULL)
		return 0;
	line++;
	if (rpc_parse(&m, line, len - (size_t)(line - text)) == 0)
		run(method, &m);
	rpc_message_clear(&m);
	return 0;
}
