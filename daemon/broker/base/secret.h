/* SPDX-License-Identifier: ISC */
/*
 * Files that decide who may do what. When they are opened, it is checked who
 * could have written or read them. They are used as they are at that moment.
 */
#pragma once

#include "base.h"

/* the most bytes of a secret or a certificate */
#define SECRET_FILE_MAX (64u << 10)
/* the fewest bytes of a secret that signs tokens */
#define SHARED_SECRET_MIN 32

enum secret_kind {
	SECRET_PUBLIC, /* everybody may read it */
	/* only its owner may read it; root's file also a group */
	SECRET_PRIVATE,
	SECRET_OF_FLAG, /* likewise, but others are only logged */
};

/* Opens a plain file that belongs to root or to our user and that others cannot
 * write. Returns the descriptor, the caller's. Otherwise returns, with
 * why[CONF_WHY_MAX], -EINVAL if the file must not be used, or another -errno if
 * it cannot be read. */
int secret_open(const char *path, enum secret_kind kind, char *why);

/* Reads the content, which may not be longer than the limit. The memory is the
 * caller's and has a NUL behind the content. Returns 0, or as above. */
int secret_read(const char *path, enum secret_kind kind, size_t limit,
    uint8_t **data, size_t *len, char *why);

/* Like secret_read(), but without the white space around the content, which may
 * not be empty. */
int secret_read_trimmed(const char *path, enum secret_kind kind, uint8_t **data,
    size_t *len, char *why);

/* Zeroes the memory and frees it. data may be NULL. */
void secret_free(void *data, size_t len);

/* Returns a descriptor to a copy of these bytes that nobody can change any
 * more, for a program that opens no files (memfd_create(2)). Returns -errno on
 * failure. */
int secret_memfd(const char *name, const void *data, size_t len);
