/* SPDX-License-Identifier: ISC */
/*
 * Shared by the two files of the OpenSSL provider: a key that another process
 * holds, and the algorithms that sign with it.
 */
#ifndef TLS_REMOTE_H
#define TLS_REMOTE_H

#include <openssl/core_dispatch.h>
#include <openssl/types.h>

#include "tls_key.h"

#define TLS_REMOTE_PROPERTIES "provider=execd"

struct remote_key {
	EVP_PKEY *public_key; /* a reference, owned */
	struct tls_key key;
};

typedef void (*tls_function)(void); /* element of an OSSL_DISPATCH */

/* The signature algorithms, for which the key process signs. */
extern const OSSL_ALGORITHM tls_remote_signatures[];

#endif
