/* SPDX-License-Identifier: ISC */
/*
 * Takes in a long fs/writeFile as it comes from the front-end: keeps its text
 * and decodes its content into a spool. Anything unusual - bad base64, escapes,
 * a full disk, a text that is no such request - is not judged here. The message
 * is then restored as it was and handled like any other.
 */
#pragma once

#include "base.h"
#include "buf.h"

/* For one session at a time; further requests are held in memory. */
#define SPOOLS_MAX 4

struct intake;

/*
 * Begins with the first part of a message of at most `limit` bytes; all of the
 * part is taken. Returns NULL if it is no such message or no spool can be made.
 * *spools counts the spool.
 */
struct intake *intake_begin(
    const void *p, size_t n, size_t limit, unsigned *spools);
void intake_free(struct intake *in); /* NULL is fine */

/*
 * Takes the next part. Returns the bytes taken. If it is less than n, the
 * message must be restored, followed by the rest.
 */
size_t intake_add(struct intake *in, const void *p, size_t n);

/* The message is complete. Returns false if it must be restored. */
bool intake_finish(struct intake *in);

/*
 * Return parts of a finished message: its text, with an empty string as
 * content, which the intake owns; and the content, which the caller then owns.
 */
struct buf *intake_text(struct intake *in);
struct spool *intake_take_spool(struct intake *in);

/*
 * Appends to *out the part of the message that was taken. Returns 0 or -errno;
 * -EMSGSIZE if it was longer than the limit.
 */
int intake_restore(struct intake *in, struct buf *out);

/*
 * Keeps the content of a long request in a file without a name instead of in
 * memory. The runner decodes the content into it as it comes, and the file
 * helper copies it to its place.
 */
struct spool {
	int fd;		 /* owned; -1: it could not be received */
	uint64_t bytes;	 /* completely written */
	unsigned *count; /* counts the spools; or NULL */
};

/* Makes a spool of a file that another program wrote. Takes fd over. */
struct spool *spool_adopt(int fd);

void spool_free(struct spool *s); /* NULL is fine */

/* Copies the content to fd, from fd's position on. Returns 0 or -errno. */
int spool_copy(const struct spool *s, int fd);

/* Like write(2) to sock; the spool's descriptor goes with the first byte. */
ssize_t spool_send(const struct spool *s, int sock, const void *p, size_t n);
