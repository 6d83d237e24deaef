/*
 * SIGHUP: the configuration anew.
 */
#include "reload.h"

#include <string.h>

#include "log.h"
#include "monitor.h"
#include "notify.h"
#include "util.h"

/* Opens what is new, takes over what stays. On failure nothing was changed. */
static int
open_listeners(struct conf *new, const struct conf *old)
{
	int code = 0;

	for (size_t i = 0; i < new->nlisteners &&code == 0; i++) {
		struct listener *before = NULL;

		for (size_t j = 0; j < old->nlisteners; j++)
			if (strcmp(old->listeners[j]->address,
				new->listeners[i]->address) == 0)
				before = old->listeners[j];
		code = listener_open(new->listeners[i], before);
	}
	return code;
}

void
reload_unlink_listeners(const struct conf *old, const struct conf *new)
{
	for (size_t i = 0; i < old->nlisteners; i++) {
		bool stays = false;

		for (size_t j = 0; new != NULL &&j < new->nlisteners; j++)
			stays |= strcmp(old->listeners[i]->address,
				     new->listeners[j]->address) == 0;
		if (!stays)
			listener_unlink(old->listeners[i]);
	}
}

void
reload_configuration(struct monitor *m)
{
	struct conf *new, *old = m->conf;
	int code;

	if (old->path == NULL) {
		log_info("SIGHUP: there is no configuration to reload");
		return;
	}
	notify("RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now_ms() * 1000);
	new = conf_load(m->options, &code);
	if (new != NULL && open_listeners(new, old) != 0) {
		reload_unlink_listeners(new, old);
		conf_free(new);
		new = NULL;
	}
	if (new == NULL) {
		log_error(0, "reload: refused, the configuration stays as it "
			     "was");
		notify("READY=1");
		return;
	}
	if (conf_log_changes(old, new) == 0)
		log_info("reload: nothing changed");
	m->conf = new;
	reload_unlink_listeners(old, new);
	frontend_reload(m);
	conf_free(old);
	notify("READY=1");
}
