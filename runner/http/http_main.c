/* SPDX-License-Identifier: ISC */
/* execd-http: its main program and its one method. */

#include "base.h"
#include "crypto_memory.h"
#include "http_exchange.h"
#include "loop.h"
#include "own_ports.h"
#include "signals.h"

static struct event_base *base;

/* The runner forwards only requests for HTTP methods. */
static void
take(struct request *r, struct rpc_message *m)
{
	char error[ARGS_ERROR_MAX];
	union method_params p;

	if (!slice_equal(m->method, SLICE("http/request")))
		log_fatal("impossible request from the runner");
	if (params_decode(params_http_request, m, &p, error) < 0)
		reply_error(
		    r->channel, &r->id, RPC_INVALID_PARAMS, "%s", error);
	else
		exchange_start(r, base, &p.http_request);
}

static void *
resize(void *p, size_t size)
{
	return xreallocarray(p, 1, size);
}

/*
 * Without memory the helper ends, as other programs do, and waiting requests
 * are answered with an error. curl itself would lose a header or a transfer.
 */
static CURLcode
init_curl(void)
{
	return curl_global_init_mem(
	    CURL_GLOBAL_DEFAULT, xmalloc, free, resize, xstrdup, xcalloc);
}

int
main(void)
{
	prctl(PR_SET_NAME, "execd-http");
	log_init("execd-http", LOG_LEVEL_INFO);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	close_from(OWN_PORTS_FD + 1);
	signals_ignore_unused(true);
	crypto_memory_init();
	http_reach_init();
	base = loop_new();
	if (init_curl() != CURLE_OK)
		log_fatal("curl cannot be set up");
	multi_init(base);
	serve(base, "http", take, exchange_resume_all);
	return 0;
}
