/*
 * execctl: the client of execd and of every other exec-server; execctl(1).
 * Runs as whoever types it, and trusts a server only with what it sends.
 */
#include <signal.h>

#include "crypto_memory.h"
#include "ctl.h"
#include "log.h"

int
main(int argc, char **argv)
{
	struct parsed parsed;
	struct ctl ctl;
	int code;

	log_init("execctl", LOG_LEVEL_WARN);
	crypto_memory_init();
	/* A reader that is gone shows as EPIPE, and is told. */
	signal(SIGPIPE, SIG_IGN);
	code = options_parse(&parsed, argc, argv);
	if (code == 0 && parsed.command != NULL) {
		ctl_init(&ctl, &parsed);
		code = parsed.command->run(&ctl);
		ctl_clear(&ctl);
	}
	options_clear(&parsed);
	return code;
}
