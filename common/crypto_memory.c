/*
 * The memory of OpenSSL (CRYPTO_set_mem_functions(3)).
 */
#include "crypto_memory.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
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

/* Of no size: what was there is given back, as the library's own does. */
static void *
resize(void *p, size_t size, const char *file, int line)
{
	if (size > 0)
		return need(realloc(p, size));
	free(p);
	return NULL;
}

static void
give_back(void *p, const char *file, int line)
{
	free(p);
}

void
crypto_memory_init(void)
{
	if (CRYPTO_set_mem_functions(get, resize, give_back) != 1)
		log_fatal("OpenSSL has taken memory already");
}
