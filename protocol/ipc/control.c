/* SPDX-License-Identifier: ISC */
/*
 * Encodes and decodes the messages of the control channels. Tables describe the
 * layout of each message (control_layout.h); one loop writes them and one reads
 * them. Both ends are programs of execd, but the reader trusts nothing.
 */
#include "control.h"

#include <assert.h>

#include "control_layout.h"

/* All tables of layouts. */
static const struct control_layouts *const all_layouts[] = {
	&control_layouts_frontend, &control_layouts_runner, NULL
};

static const struct control_layout *
find_in(const struct control_layouts *l, enum control_type type)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->rows[i].type == type)
			return &l->rows[i];
	return NULL;
}

/* Finds the layout of a type. *channel becomes the table that contains it. */
static const struct control_layout *
layout_on(enum control_type type, const struct control_layouts **channel)
{
	const struct control_layouts *const *all = all_layouts;
	const struct control_layout *l = NULL;

	for (; *all != NULL && l == NULL; all++) {
		*channel = *all;
		l = find_in(*all, type);
	}
	return l;
}

static const struct control_layout *
layout_find(enum control_type type)
{
	const struct control_layouts *channel;

	return layout_on(type, &channel);
}

void
control_put(struct buf *b, enum control_type type, const void *payload)
{
	const struct control_layouts *channel;
	const struct control_layout *l = layout_on(type, &channel);

	assert(l != NULL);
	buf_put_u32(b, type);
	if (l->first)
		buf_put_u32(b, channel->version);
	fields_put(b, l->fields, l->count, payload);
}

enum control_type
control_peek(const void *message, size_t len)
{
	struct buf_reader r;
	enum control_type type;

	buf_reader_init(&r, message, len);
	type = buf_get_u32(&r);
	return r.failed || layout_find(type) == NULL ? 0 : type;
}

static bool
is_spoken(const struct control_layouts *channel, uint32_t version)
{
	return version >= channel->oldest && version <= channel->version;
}

static int
get_version(struct buf_reader *r, const struct control_layouts *channel)
{
	uint32_t version = buf_get_u32(r);

	if (r->failed)
		return -EBADMSG;
	return is_spoken(channel, version) ? 0 : -EPROTO;
}

int
control_get(
    const void *message, size_t len, enum control_type type, void *payload)
{
	const struct control_layouts *channel;
	const struct control_layout *l = layout_on(type, &channel);
	struct buf_reader r;
	int err;

	if (l == NULL)
		return -EBADMSG;
	buf_reader_init(&r, message, len);
	if (buf_get_u32(&r) != type)
		return -EBADMSG;
	err = l->first ? get_version(&r, channel) : 0;
	if (err < 0)
		return err;
	fields_get(&r, l->fields, l->count, payload);
	return buf_end(&r);
}

uint32_t
control_version(const void *message, size_t len)
{
	const struct control_layout *l =
	    layout_find(control_peek(message, len));
	struct buf_reader r;
	uint32_t version;

	buf_reader_init(&r, message, len);
	buf_get_u32(&r);
	version = buf_get_u32(&r);
	return l == NULL || !l->first || r.failed ? 0 : version;
}

const char *
control_name(enum control_type type)
{
	const struct control_layout *l = layout_find(type);

	return l ? l->name : "unknown message";
}

const char *
control_fault(const void *message, size_t len, char text[CONTROL_FAULT_MAX])
{
	enum control_type type = control_peek(message, len);
	const struct control_layouts *channel;
	const struct control_layout *l = layout_on(type, &channel);
	struct buf_reader r;
	uint32_t version;

	buf_reader_init(&r, message, len);
	buf_get_u32(&r);
	version = buf_get_u32(&r);
	if (l == NULL || !l->first || r.failed || is_spoken(channel, version))
		return control_name(type);
	snprintf(text, CONTROL_FAULT_MAX,
	    "%s of version %u; this program speaks %u to %u", l->name, version,
	    channel->oldest, channel->version);
	return text;
}

/* --- names -------------------------------------------------------------- */

/* Of values in messages, for logs, metrics and clients. */

const char *
control_verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_GRANTED] = "granted",
		[VERDICT_RESUME] = "granted, to resume",
		[VERDICT_MISSING_TOKEN] = "missing websocket bearer token",
		[VERDICT_INVALID_HEADER] = "invalid authorization header",
		[VERDICT_INVALID_TOKEN] = "invalid websocket bearer token",
		[VERDICT_INVALID_JWT] = "invalid websocket jwt",
		[VERDICT_EXPIRED_JWT] = "expired websocket jwt",
		[VERDICT_EARLY_JWT] = "websocket jwt is not valid yet",
		[VERDICT_ISSUER] = "websocket jwt issuer mismatch",
		[VERDICT_AUDIENCE] = "websocket jwt audience mismatch",
		[VERDICT_BUSY] =
		    "the server has no room for another connection",
		[VERDICT_STRANGER] = "the client is not known here",
		[VERDICT_SUBJECT] =
		    "no identity has the subject of this websocket jwt",
		[VERDICT_NOT_OPERATOR] =
		    "the identity is none of the operators of this listener",
		[VERDICT_EXPIRED_TOKEN] = "expired websocket bearer token",
		[VERDICT_MEMBER] =
		    "a new member of the group: `execd ctl reload` lets him in",
		[VERDICT_LOCKED] = "the operator has locked this identity",
	};

	return (size_t)verdict < nitems(names) ? names[verdict] : "";
}

const char *
control_reach_name(unsigned reach)
{
	static const char *const names[REACHES] = { "enabled", "restricted",
		"listed", "public" };

	return reach < REACHES ? names[reach] : NULL;
}

_Static_assert(END_CAUSES <= METRICS_CAUSES_MAX, "metrics of every cause");

const char *
control_cause_name(unsigned cause)
{
	static const char *const names[END_CAUSES] = {
		[END_SIGNAL] = "signal",
		[END_CLIENT] = "client",
		[END_SESSION] = "session-end",
		[END_TIMEOUT] = "timeout",
		[END_COMMAND_DEADLINE] = "command-deadline",
		[END_MEMORY] = "memory",
		[END_CPU_TIME] = "max-cpu-time",
		[END_FILE_SIZE] = "max-file-size",
		[END_FILTER] = "sandbox",
		[END_RECORDING] = "record-tty",
	};

	return cause < END_CAUSES ? names[cause] : NULL;
}
