/* SPDX-License-Identifier: ISC */
/*
 * A long fs/writeFile as it comes from the front-end: its text is kept, its
 * content is decoded into a spool. Whatever is unusual about it - bad base64,
 * escapes, a full disk, a text that is no such request - is not judged here:
 * the message is put together again as it was, for the ordinary way.
 */
#ifndef INTAKE_H
#define INTAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "buf.h"
#include "spool.h"

struct intake;

/* The beginning of a message of at most `limit` bytes, all of which is taken.
 * NULL: it is not one of these, or there is no place for it. */
struct intake *intake_begin(
    const void *p, size_t n, size_t limit, unsigned *spools);
void intake_free(struct intake *in); /* NULL is fine */

/* What follows. Returns how much was taken; less than n: it is no longer one
 * of these and must be restored, with the rest behind. */
size_t intake_add(struct intake *in, const void *p, size_t n);

/* The message is whole. False: it must be restored. */
bool intake_finish(struct intake *in);

/* Of a finished one: its text with an empty string for the content, which is
 * the intake's; and the content, which is the caller's. */
struct buf *intake_text(struct intake *in);
struct spool *intake_take_spool(struct intake *in);

/* Appends the message as far as it was taken. 0 or -errno; -EMSGSIZE: there
 * was more of it than the limit. */
int intake_restore(struct intake *in, struct buf *out);

#endif
