/*
 * The file helper's loop and its dispatcher. Blocking is its purpose: the
 * session goes on meanwhile.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "control.h"
#include "files.h"
#include "frame.h"
#include "log.h"

/* The runner let no larger message in (max-message-bytes). */
#define REQUEST_MAX_BYTES (1u << 30)

static struct channel channel;
static bool over;

static const struct file_method {
	const char *name;
	params_fn *params;
	file_fn *act;
} file_methods[] = {
#define METHOD(name, wire, family, when)
#define FILE_METHOD(name, wire) { wire, params_##name, file_##name },
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
		if (strlen(file_methods[i].name) == name.len &&
		    !memcmp(file_methods[i].name, name.ptr, name.len))
			return &file_methods[i];
	return NULL;
}

/* A path of another host or a drive is a URI, but names nothing here. */
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

	if (method->params(m, &p, error) < 0)
		return reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	/* The network is no concern of a file operation. */
	if (p.fs.has_sandbox && !p.fs.sandbox.files_unrestricted)
		return reply_error(r->channel, &r->id, RPC_INVALID_PARAMS,
		    "sandbox intent cannot be enforced on this executor");
	foreign = foreign_path(&p.fs);
	if (foreign != NULL)
		return reply_error(r->channel, &r->id, RPC_MALFORMED,
		    "'%.*s' is invalid on 'linux'", (int)foreign->uri.len,
		    foreign->uri.ptr);
	return method->act(r, &p.fs);
}

/* The runner passes on only what it found to be a file method. */
static void
on_message(struct channel *ch, char *text, size_t len)
{
	struct request r = { .channel = ch };
	struct rpc_message m;

	if (rpc_parse(&m, text, len) < 0 || m.kind != RPC_KIND_REQUEST ||
	    find_method(m.method) == NULL)
		log_fatal("impossible request from the runner");
	rpc_id_copy(&r.id, m.id);
	ch->tag = frame_next_number(ch->tag);
	answer(&r, &m);
	rpc_id_clear(&r.id);
	rpc_message_clear(&m);
	channel_write_all(ch);
}

static void
on_drained(struct channel *ch)
{
}

static void
on_ended(struct channel *ch)
{
	over = true;
}

static void
on_broken(struct channel *ch, int err)
{
	over = true;
}

static const struct channel_events channel_events = {
	.message = on_message,
	.drained = on_drained,
	.ended = on_ended,
	.broken = on_broken,
};

int
files_run(struct event_base *base)
{
	log_init("execd-runner", LOG_LEVEL_INFO);
	log_set_label("files");
	prctl(PR_SET_NAME, "execd-files");
	prctl(PR_SET_DUMPABLE, 0);
	channel_open(&channel, base, CONTROL_FD, CONTROL_FD, REQUEST_MAX_BYTES,
	    &channel_events, NULL);
	channel.tagged = true;
	while (!over && event_base_loop(base, EVLOOP_ONCE) >= 0)
		continue;
	file_handles_clear();
	return 0;
}
