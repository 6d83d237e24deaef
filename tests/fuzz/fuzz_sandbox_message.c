/*
 * nest_order: what decodes encodes to a message that decodes to the same; no
 * length or count reads beyond the message or allocates without a limit.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "sandbox_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Each: 0 with the message again in *out, or -EBADMSG. */
static int
again_build(struct buf_reader *r, struct buf *out)
{
	struct nest_options o;
	struct plan plan;
	int err = nest_build_get(r, &o, &plan);

	for (size_t i = 0; err == 0 && i < plan.count; i++)
		assert(plan.mounts[i].path[0] == '/');
	if (err == 0)
		nest_build_put(out, &o, &plan);
	plan_clear(&plan);
	return err;
}

static int
again_start(struct buf_reader *r, struct buf *out)
{
	struct nest_command c;
	int err = nest_start_get(r, &c);

	if (err == 0)
		nest_start_put(out, &c, c.joins);
	nest_command_clear(&c);
	return err;
}

static int
again_cover(struct buf_reader *r, struct buf *out)
{
	struct plan plan;
	int err = nest_cover_get(r, &plan);
	struct mask *masks = xcalloc(plan.count, sizeof(*masks));

	for (size_t i = 0; i < plan.count; i++)
		masks[i] = (struct mask){ .path = plan.mounts[i].path,
			.seen = plan.mounts[i].seen };
	if (err == 0)
		nest_cover_put(out, masks, plan.count);
	free(masks);
	plan_clear(&plan);
	return err;
}

static int
again_answer(struct buf_reader *r, struct buf *out)
{
	struct nest_answer a;
	int err = nest_answer_get(r, &a);

	assert(a.err <= 0 && a.command >= 0 && a.init >= 0);
	if (err == 0)
		nest_answer_put(out, &a);
	return err;
}

static int
again(const uint8_t *data, size_t len, struct buf *out)
{
	struct buf_reader r;
	uint8_t type;

	buf_reader_init(&r, data, len);
	type = buf_get_u8(&r);
	if (type == NEST_BUILD)
		return again_build(&r, out);
	if (type == NEST_START)
		return again_start(&r, out);
	if (type == NEST_COVER)
		return again_cover(&r, out);
	/* An answer has no type: what is left is tried as one. */
	buf_put_u8(out, type);
	return again_answer(&r, out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct buf first, second;
	int err;

	buf_init(&first, NEST_MESSAGE_MAX);
	buf_init(&second, NEST_MESSAGE_MAX);
	err = again(data, len, &first);
	assert(err == 0 || err == -EBADMSG);
	if (err == 0) {
		/* Flags become 0 or 1, masks are left out: once. */
		assert(!first.failed);
		assert(again(first.data, first.len, &second) == 0);
		assert(first.len == second.len &&
		       !memcmp(first.data, second.data, first.len));
	}
	buf_clear(&first);
	buf_clear(&second);
	return 0;
}
