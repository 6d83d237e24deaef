/* SPDX-License-Identifier: ISC */
/*
 * The file helper's dispatcher. The helper may block; the session goes on
 * meanwhile.
 */
#include "files.h"

#include <assert.h>

#include "control_limits.h"
#include "path_map.h"

static bool inside; /* a sandbox whose view enforces the policy */

files_hides_fn *files_hides;

static const struct file_method {
	const char *name;
	params_fn *params;
	file_fn *act;
} file_methods[] = {
#define METHOD(name, wire, family, when, repeat)
#define FILE_METHOD(name, wire, family, use, repeat)                           \
	{ wire, params_##name, file_##name },
#define HTTP_METHOD(name, wire)
#include "methods.def"
#undef METHOD
#undef FILE_METHOD
#undef HTTP_METHOD
};

static const struct file_method *
find_method(struct slice name)
{
	for (size_t i = 0; i < nitems(file_methods); i++)
		if (slice_equal(slice_of(file_methods[i].name), name))
			return &file_methods[i];
	return NULL;
}

/*
 * A URI may name another host or a drive; it is valid but names nothing here.
 */
static const struct path_uri *
foreign_path(const struct fs_params *p)
{
	if (p->path.foreign)
		return &p->path;
	return p->destination.foreign ? &p->destination : NULL;
}

static int
answer(struct request *r, struct rpc_message *m)
{
	const struct file_method *method = find_method(m->method);
	char error[ARGS_ERROR_MAX];
	union method_params p;
	const struct path_uri *foreign;

	assert(method != NULL); /* the runner forwards no other method */
	if (params_decode(method->params, m, &p, error) < 0)
		return reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	/*
	 * The network does not matter to a file operation. A policy that
	 * restricts files is enforced only by the helper in its sandbox.
	 */
	if (!inside && p.fs.has_sandbox && !p.fs.sandbox.files_unrestricted)
		return reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "sandbox intent cannot be enforced on this executor: "
		    "this file helper has no sandbox");
	foreign = foreign_path(&p.fs);
	if (foreign != NULL)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "'%.*s' is invalid on 'linux'%s", (int)foreign->uri.len,
		    foreign->uri.ptr, path_uri_hint(foreign));
	return method->act(r, &p.fs);
}

/*
 * The runner forwards only file methods. Blocking until the answer is written
 * keeps only one answer in memory.
 */
static void
take(struct request *r, struct rpc_message *m)
{
	if (find_method(m->method) == NULL)
		log_fatal("impossible request from the runner");
	answer(r, m);
	channel_write_all(r->channel);
}

/* The runner decoded the same map and put it into the environment. */
static void
use_path_map(void)
{
	const char *text = getenv(CONTROL_PATH_MAP_ENV);
	char why[PATH_MAP_WHY_MAX];

	if (text != NULL && path_map_use(text, why) < 0)
		log_fatal("impossible path map from the runner: %s", why);
}

int
files_run(struct event_base *base, bool in_sandbox, files_hides_fn *hides)
{
	inside = in_sandbox;
	files_hides = hides;
	use_path_map();
	/* The runner accepted it before it forwarded the request. */
	sandbox_context_accept_launch(true);
	log_init("execd-runner", LOG_LEVEL_INFO);
	prctl(PR_SET_NAME, "execd-files");
	serve(base, "files", take, NULL);
	file_handles_clear();
	return 0;
}
