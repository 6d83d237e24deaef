/* SPDX-License-Identifier: ISC */
/*
 * control: what decodes encodes back to the same bytes, and is no message of
 * another type. Every decode starts on a dirty struct.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define TYPE_MAX 96 /* above every enum control_type */

union payload {
	struct control_configure configure;
	struct control_ready ready;
	struct control_authenticate authenticate;
	struct control_refused refused;
	struct control_verdict verdict;
	struct control_open open;
	struct control_resume resume;
	struct control_session session;
	struct control_close close;
	struct control_closed closed;
	struct control_runner_exited runner_exited;
	struct control_session_config session_config;
	struct sandbox_limits sandbox;
	struct control_attach attach;
	struct control_detached detached;
	struct control_listener listener;
	struct control_started started;
	struct control_exited exited;
	struct control_audit audit;
	struct control_audit_state audit_state;
	struct control_file file;
	struct control_http http;
	struct control_network network;
	struct control_recording_wanted recording_wanted;
	struct control_metrics metrics;
	struct control_recording_file recording_file;
	struct control_key key;
	struct control_sign sign;
	struct control_signed answer;
	struct control_trust trust;
	struct control_serve serve;
	struct control_verify verify;
	struct control_verified verified;
	struct control_identity identity;
	struct control_running running;
	struct control_keep_wanted keep_wanted;
	struct control_keep keep;
	struct control_keep_state keep_state;
	struct control_list_wanted list_wanted;
	struct control_list list;
	struct control_token token;
};

/* 0, -EBADMSG, or -EPROTO of a version that is not spoken. On the heap: a write
 * beyond the struct is seen. */
static int
get(const uint8_t *data, size_t len, enum control_type type, struct buf *out)
{
	_cleanup_free_ union payload *p = xmalloc(sizeof(*p));
	int err;

	memset(p, 0xa5, sizeof(*p));
	err = control_get(data, len, type, p);
	if (err == 0)
		control_put(out, type, p);
	return err;
}

static void
check_same(const uint8_t *data, size_t len, enum control_type type)
{
	struct buf again;
	int err;

	buf_init(&again, CONTROL_MESSAGE_MAX);
	err = get(data, len, type, &again);
	assert(err == 0 || err == -EBADMSG || err == -EPROTO);
	assert(!again.failed);
	if (err == 0) {
		assert(again.len == len && !memcmp(again.data, data, len));
		assert(get(data, len - 1, type, &again) == -EBADMSG);
	}
	buf_clear(&again);
}

static void
check_other(const uint8_t *data, size_t len, enum control_type type)
{
	union payload p;

	for (unsigned i = 0; i < TYPE_MAX; i++)
		if (i != type)
			assert(control_get(data, len, i, &p) == -EBADMSG);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum control_type type = control_peek(data, len);

	assert(control_name(type)[0] != '\0');
	assert(type == 0 || (len >= 4 && data[0] == type));
	if (type != 0)
		check_same(data, len, type);
	check_other(data, len, type);
	return 0;
}
