/* SPDX-License-Identifier: ISC */
/*
 * execd-netproxy: the only way out of a sandbox whose network is a list of
 * hosts. It listens in the sandbox's network namespace, by a descriptor that
 * was made there, and connects from the host's. It reads bytes of hostile
 * commands and hostile servers, so it sees no file that it could write and
 * starts nothing.
 */
#include <netdb.h>
#include <sys/resource.h>

#include "base.h"
#include "landlock.h"
#include "loop.h"
#include "netproxy_control.h"
#include "own_ports.h"
#include "proxy_client.h"
#include "proxy_dial.h"
#include "proxy_names.h"
#include "signals.h"

/* Loads the libraries of name services, which may not be executed later. */
static void
load_resolver(void)
{
	struct addrinfo *found = NULL;

	if (getaddrinfo("localhost", NULL, NULL, &found) == 0)
		freeaddrinfo(found);
}

/* Names are resolved from files that change, so files may be read. A kernel
 * without Landlock changes nothing else. */
static void
confine(void)
{
	const struct landlock_attr attr = {
		.fs = LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE |
		      LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE |
		      LANDLOCK_MAKE_CHAR | LANDLOCK_MAKE_DIR |
		      LANDLOCK_MAKE_REG | LANDLOCK_MAKE_SOCK |
		      LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_BLOCK |
		      LANDLOCK_MAKE_SYM | LANDLOCK_REFER | LANDLOCK_TRUNCATE,
		.scopes = LANDLOCK_SCOPE_ABSTRACT | LANDLOCK_SCOPE_SIGNAL,
	};
	int abi = landlock_abi();
	int ruleset = landlock_create(&attr, abi < 7 ? abi : 7);

	if (ruleset < 0)
		return;
	if (landlock_restrict(ruleset, 0) < 0)
		log_fatal("Landlock cannot be applied");
	close(ruleset);
}

static void
raise_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

int
main(void)
{
	struct event_base *base;
	int err;

	prctl(PR_SET_NAME, "execd-netproxy");
	log_init("execd-netproxy", LOG_LEVEL_INFO);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0);
	close_from(OWN_PORTS_FD + 1);
	err = own_ports_take(OWN_PORTS_FD);
	if (err < 0)
		log_fatal_errno(err, "execd's own ports");
	close(OWN_PORTS_FD);
	signals_ignore_unused(true);
	raise_descriptors();
	load_resolver();
	confine();
	base = loop_new();
	proxy_dial_init(base);
	proxy_client_init(base);
	proxy_names_init(base);
	netproxy_control_init(base);
	for (;;)
		loop_turn(base);
}
