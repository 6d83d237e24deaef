/* SPDX-License-Identifier: ISC */
/*
 * Files that decide who may do what: opened with a look at who could have
 * written or read them, and taken as they are at that moment.
 */
#ifndef SECRET_H
#define SECRET_H

#include <stddef.h>
#include <stdint.h>

#define SECRET_FILE_MAX	  (64u << 10) /* of a secret or a certificate */
#define SHARED_SECRET_MIN 32	      /* bytes of one that signs tokens */

enum secret_kind {
	SECRET_PUBLIC,	/* anybody may read it */
	SECRET_PRIVATE, /* its owner alone; root's also a group */
	SECRET_OF_FLAG, /* likewise, but only the log says so */
};

/* A plain file of root's or our own that others cannot write. Its descriptor,
 * the caller's, or with why[CONF_WHY_MAX] -EINVAL (it must not be used) or
 * another -errno (it cannot be read). */
int secret_open(const char *path, enum secret_kind kind, char *why);

/* Its content, if it is no longer than the limit; the memory is the caller's,
 * and has a NUL behind it. 0, or as above. */
int secret_read(const char *path, enum secret_kind kind, size_t limit,
    uint8_t **data, size_t *len, char *why);

/* secret_read() without the white space around the content, which may not be
 * empty. */
int secret_read_trimmed(const char *path, enum secret_kind kind, uint8_t **data,
    size_t *len, char *why);

/* Zeroes and frees. NULL is fine. */
void secret_free(void *data, size_t len);

/* A descriptor to these bytes that nobody can change any more, for a program
 * that opens no files (memfd_create(2)). -errno on failure. */
int secret_memfd(const char *name, const void *data, size_t len);

#endif
