/* SPDX-License-Identifier: ISC */
/*
 * SIGHUP: the configuration anew.
 */
#include "reload.h"

#include <unistd.h>

#include "ctl.h"
#include "group_limits.h"
#include "log.h"
#include "monitor.h"
#include "notify.h"
#include "session_spare.h"
#include "util.h"

/* Opens what is next, takes over what stays. On failure nothing was changed. */
static int
open_all(struct broker *m, struct conf *next, const struct conf *old)
{
	const char *place;
	int code = 0, err;

	if (geteuid() == 0 &&
	    group_limits_check(next->identities, next->nidentities) < 0)
		return EXIT_UNENFORCEABLE;
	err = audit_open(&next->audit, &place);

	if (err < 0) {
		log_error(err, "audit log %s", place);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < next->nlisteners && code == 0; i++) {
		struct listener *before = NULL;

		for (size_t j = 0; j < old->nlisteners; j++)
			if (listener_stays(
				old->listeners[j], next->listeners[i]))
				before = old->listeners[j];
		code = listener_open(next->listeners[i], before);
	}
	return code != 0 ? code : ctl_open(next, old, m->options);
}

void
reload_unlink_listeners(const struct conf *old, const struct conf *next)
{
	for (size_t i = 0; i < old->nlisteners; i++) {
		bool stays = false;

		for (size_t j = 0; next != NULL && j < next->nlisteners; j++)
			stays |= listener_stays(
			    old->listeners[i], next->listeners[j]);
		if (!stays)
			listener_unlink(old->listeners[i]);
	}
	ctl_unlink(old, next);
}

int
reload_configuration(struct broker *m)
{
	struct conf *next, *old = m->conf;
	int code;

	if (old->path == NULL) {
		log_info(
		    "reload (SIGHUP, execd ctl): there is no configuration to reload");
		return EXIT_FAILED;
	}
	notify("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now_ms() * 1000);
	next = conf_load(m->options, &code);
	if (next != NULL && (code = open_all(m, next, old)) != 0) {
		reload_unlink_listeners(next, old);
		conf_free(next);
		next = NULL;
	}
	if (next == NULL) {
		log_error(0, "reload: refused, the configuration stays as it "
			     "was");
		notify("READY=1");
		return code;
	}
	if (conf_log_changes(old, next) == 0)
		log_info("reload: nothing changed");
	audit_settle(&old->audit);
	next->audit.records = old->audit.records;
	next->audit.lost = old->audit.lost;
	m->conf = next;
	conf_warn(next);
	session_spare_drop_all(m);
	for (size_t i = 0; i < old->nidentities; i++)
		identity_retire(old->identities[i]);
	reload_unlink_listeners(old, next);
	frontend_reload(m);
	ctl_serve(m);
	conf_free(old);
	notify("READY=1");
	return 0;
}
