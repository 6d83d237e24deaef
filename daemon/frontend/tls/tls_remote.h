/* SPDX-License-Identifier: ISC */
/*
 * What the two halves of the provider share: a key that is elsewhere, and the
 * algorithms that sign with it.
 */
#ifndef TLS_REMOTE_H
#define TLS_REMOTE_H

#include <openssl/core_dispatch.h>
#include <openssl/types.h>

#include "tls_key.h"

#define TLS_REMOTE_PROPERTIES "provider=execd"

struct remote_key {
	EVP_PKEY *public_key; /* a reference */
	struct tls_key key;
};

typedef void (*tls_function)(void); /* of an OSSL_DISPATCH */

/* Signatures that the key process makes, for the provider's query. */
extern const OSSL_ALGORITHM tls_remote_signatures[];

#endif
