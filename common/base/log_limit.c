/* SPDX-License-Identifier: ISC */
#include "log_limit.h"

#include "base.h"
#include "siphash.h"

static unsigned
times(const struct log_limit *l)
{
	return l->factor > 0 ? l->factor : 1;
}

/* Applies the limit of all sources together. At the start of a new second,
 * *others becomes the number of lines left out before, which costs the caller
 * one more line. */
static bool
is_room(struct log_limit *l, int64_t now, unsigned *others)
{
	if (now - l->second_ms >= 1000) {
		l->second_ms = now;
		l->lines = 0;
		*others = l->left_out;
		l->left_out = 0;
	}
	if (l->lines >= LOG_LIMIT_ALL * times(l))
		return false;
	l->lines++;
	return true;
}

/* Returns the slot of this key, or the slot that has been counting for
 * longest. */
static unsigned
find_slot(const struct log_limit *l, uint64_t key)
{
	unsigned oldest = 0;

	for (unsigned i = 0; i < LOG_LIMIT_SLOTS; i++) {
		if (l->slots[i].key == key)
			return i;
		if (l->slots[i].since_ms < l->slots[oldest].since_ms)
			oldest = i;
	}
	return oldest;
}

bool
log_limit_permits(struct log_limit *l, uint64_t key, int64_t now, unsigned *own,
    unsigned *others)
{
	unsigned i = find_slot(l, key);
	bool another = l->slots[i].key != key;

	*own = *others = 0;
	/* The previous owner of the slot is from now on counted without its
	 * name. */
	if (another) {
		l->left_out += l->slots[i].left_out;
		l->slots[i].left_out = 0;
		l->slots[i].key = key;
	}
	if (another || now - l->slots[i].since_ms >= LOG_LIMIT_MS) {
		l->slots[i].since_ms = now;
		l->slots[i].lines = 0;
	}
	if (l->slots[i].lines >= LOG_LIMIT_LINES * times(l) ||
	    !is_room(l, now, others)) {
		l->slots[i].left_out++;
		return false;
	}
	l->slots[i].lines++;
	*own = l->slots[i].left_out;
	l->slots[i].left_out = 0;
	return true;
}

bool
log_permits(enum log_matter matter, const char *peer, const char *kind)
{
	static struct log_limit limits[LOG_MATTERS];
	static const char *const others_are[LOG_MATTERS] = {
		"failed connections", "others", "sessions"
	};
	const char *port = strrchr(peer, ':');
	int len = port ? (int)(port - peer) : (int)strlen(peer);
	char text[256];
	unsigned own, others;
	int n = snprintf(text, sizeof(text), "%.*s %s", len, peer, kind);
	size_t size = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;

	limits[LOG_SESSION].factor = LOG_LIMIT_SESSIONS;
	if (!log_limit_permits(&limits[matter], siphash_bytes(text, size),
		now_ms(), &own, &others))
		return false;
	if (others > 0)
		log_warn(0, "%u lines about %s were left out", others,
		    others_are[matter]);
	if (own > 0)
		log_warn(0, "%.*s: %u lines like the next one were left out",
		    len, peer, own);
	return true;
}
