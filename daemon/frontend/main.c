/* SPDX-License-Identifier: ISC */
/*
 * execd-frontend: speaks with clients over the network, and trusts none of
 * them. The broker starts it with the control channel on descriptor 3. The
 * first messages on this channel bring everything else that it needs.
 */
#include <event2/event.h>

#include "base.h"
#include "broker_request.h"
#include "code_pages.h"
#include "config.h"
#include "connection.h"
#include "crypto_memory.h"
#include "frontend_main.h"
#include "heap.h"
#include "loop.h"
#include "signals.h"
#include "siphash.h"
#include "tls_helper.h"

#if EXECD_SANITIZED
/* The leak checker attaches to its own process, which the filter forbids. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* Uses everything once that opens or loads something at its first use. It comes
 * before the filter, and after the privileges are given up: a library that
 * begins runs as nobody, and finds no file. */
static void
warm_up(void)
{
	char accept[WEBSOCKET_ACCEPT_LEN + 1];

	websocket_accept("warm", 4, accept);
	siphash_process_key();
	tls_init();
}

int
main(int argc, char **argv)
{
	bool given = argc == 3 && strcmp(argv[1], "--user") == 0;
	struct control_ready ready;
	struct offer offer;

	prctl(PR_SET_NAME, "execd-frontend");
	log_init("execd-frontend",
	    getenv("EXECD_DEBUG") ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	log_never_block();
	signals_ignore_unused(true);
	crypto_memory_init();
	base = loop_new_direct(given);
	loop_log(base);
	heap_init(base);
	confine_privileges(given ? argv[2] : NULL, &ready);
	warm_up();
	broker_wait_configure(&offer);
	config = offer.configure.limits;
	broker_watch();
	health_watch();
	handoff_init();
	listener_prepare_stdio(&offer);
	confine(&offer, &ready);
	helper_init(broker_helper_hangs);
	helper_set_channels(offer.helpers);
	listener_take(&offer, true);
	broker_tell(BROKER_REQ_READY, &ready);
	listener_take_stdio(&offer);
	code_pages_give_back();
	while (!event_base_got_break(base) && !broker_may_leave()) {
		if (event_base_loop(base, EVLOOP_ONCE) < 0)
			log_fatal("event loop failed");
		connection_reap();
		heap_turn();
	}
	return 0;
}
