/* SPDX-License-Identifier: ISC */
/*
 * The memory of OpenSSL (CRYPTO_set_mem_functions(3)).
 */
#include "crypto_memory.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

/* In the middle of OpenSSL exit(3) would wait for it for ever. */
static void *
need(void *p)
{
	if (p == NULL) {
		log_error(-ENOMEM, "OpenSSL");
		_exit(1);
	}
	return p;
}

static void *
get(size_t size, const char *file, int line)
{
	return need(malloc(size ? size : 1));
}

static void
give_back(void *p, const char *file, int line)
{
	free(p);
}

/* Of no size: what was there is given back, as the library's own does. */
static void *
resize(void *p, size_t size, const char *file, int line)
{
	if (size > 0)
		return need(realloc(p, size));
	free(p);
	return NULL;
}

/* The library cleanses a key when it frees one, but not every buffer that it
 * decoded the key in. */
static void
cleanse(void *p, const char *file, int line)
{
	if (p != NULL)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

static void *
resize_cleansed(void *p, size_t size, const char *file, int line)
{
	size_t old = p != NULL ? malloc_usable_size(p) : 0;
	void *moved = size > 0 ? need(malloc(size)) : NULL;

	if (moved != NULL && old > 0)
		memcpy(moved, p, old < size ? old : size);
	cleanse(p, file, line);
	return moved;
}

void
crypto_memory_init(void)
{
	if (CRYPTO_set_mem_functions(get, resize, give_back) != 1)
		log_fatal("OpenSSL has taken memory already");
}

void
crypto_memory_init_secret(void)
{
	if (CRYPTO_set_mem_functions(get, resize_cleansed, cleanse) != 1)
		log_fatal("OpenSSL has taken memory already");
}
