/* SPDX-License-Identifier: ISC */
/*
 * Memory for OpenSSL (CRYPTO_set_mem_functions(3)).
 */
#include "crypto_memory.h"

#include <malloc.h>
#include <openssl/crypto.h>

#include "base.h"

/* exit(3) is not called here: inside OpenSSL it could wait for OpenSSL for
 * ever. */
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

/* A size of 0 frees the memory, as in OpenSSL's own function. */
static void *
resize(void *p, size_t size, const char *file, int line)
{
	if (size > 0)
		return need(realloc(p, size));
	free(p);
	return NULL;
}

/* OpenSSL overwrites a key when it frees it, but not every buffer in which it
 * decoded the key. */
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
