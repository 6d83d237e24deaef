/*
 * The list of what a session's runner made on the disk: wanted when it dies
 * before it took that away, and in flight until then (inflight.h).
 */
#include <unistd.h>

#include "log.h"
#include "monitor.h"
#include "starter.h"

int
session_masks_keep(struct registry *r, struct session *s, int fd)
{
	int key = inflight_put(&r->masks, fd);

	if (key < 0)
		return key;
	s->masks = key;
	return 0;
}

/* The last descriptors are not given to sessions: there is one for this. */
static int
take(struct registry *r, struct session *s)
{
	int list = inflight_take(&r->masks, s->masks);

	if (list < 0)
		log_error(list, "session %.*s: its list of masks is lost",
		    ID_LOG_CHARS, s->id);
	s->masks = -1;
	return list;
}

void
session_masks_close(struct registry *r, struct session *s)
{
	int list = s->masks < 0 ? -1 : take(r, s);

	if (list >= 0)
		close(list);
}

void
session_masks_sweep(struct monitor *m, struct session *s)
{
	int list = take(&m->sessions, s);

	if (list < 0)
		return;
	starter_sweep(m, s->identity, list);
	close(list);
}
