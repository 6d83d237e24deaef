/* SPDX-License-Identifier: ISC */
/*
 * sandbox_message: what decodes encodes to a message that decodes to the same;
 * no length or count reads beyond the message or allocates without a limit.
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
	struct sandbox_options o;
	struct plan plan;
	int err = sandbox_build_get(r, &o, &plan);

	for (size_t i = 0; err == 0 && i < plan.count; i++)
		assert(plan.mounts[i].path[0] == '/');
	if (err == 0)
		sandbox_build_put(out, &o, &plan);
	plan_clear(&plan);
	return err;
}

static struct placeholders
placeholders_of(const struct plan *plan)
{
	struct placeholders p = { .all =
				      xcalloc(plan->count + 1, sizeof(*p.all)),
		.count = plan->count };

	for (size_t i = 0; i < plan->count; i++)
		p.all[i] = (struct placeholder){ .path = plan->mounts[i].path,
			.seen = plan->mounts[i].seen };
	return p;
}

static int
again_start(struct buf_reader *r, struct buf *out)
{
	struct sandbox_command c;
	struct plan cover;
	int err = sandbox_start_get(r, &c, &cover);
	struct placeholders p = placeholders_of(&cover);

	if (err == 0)
		sandbox_start_put(out, &c, c.joins, &p);
	free(p.all);
	sandbox_command_clear(&c);
	plan_clear(&cover);
	return err;
}

static int
again_cover(struct buf_reader *r, struct buf *out)
{
	struct plan plan;
	int err = sandbox_cover_get(r, &plan);
	struct placeholders p = placeholders_of(&plan);

	if (err == 0)
		sandbox_cover_put(out, &p);
	free(p.all);
	plan_clear(&plan);
	return err;
}

static int
again_answer(struct buf_reader *r, struct buf *out)
{
	struct sandbox_answer a;
	int err = sandbox_answer_get(r, &a);

	assert(a.err <= 0 && a.command >= 0 && a.init >= 0);
	if (err == 0)
		sandbox_answer_put(out, &a);
	return err;
}

static int
again(const uint8_t *data, size_t len, struct buf *out)
{
	struct buf_reader r;
	uint8_t type;

	buf_reader_init(&r, data, len);
	type = buf_get_u8(&r);
	if (type == SANDBOX_BUILD)
		return again_build(&r, out);
	if (type == SANDBOX_START)
		return again_start(&r, out);
	if (type == SANDBOX_COVER)
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

	buf_init(&first, SANDBOX_MESSAGE_MAX);
	buf_init(&second, SANDBOX_MESSAGE_MAX);
	err = again(data, len, &first);
	assert(err == 0 || err == -EBADMSG);
	if (err == 0) {
		/* Flags become 0 or 1, placeholders are left out: once. */
		assert(!first.failed);
		assert(again(first.data, first.len, &second) == 0);
		assert(first.len == second.len &&
		       !memcmp(first.data, second.data, first.len));
	}
	buf_clear(&first);
	buf_clear(&second);
	return 0;
}
