/* SPDX-License-Identifier: ISC */
/*
 * An OpenSSL provider (provider(7)) for keys that the key process holds. Such a
 * private key consists of a number and the public key.
 */
#ifndef TLS_PROVIDER_H
#define TLS_PROVIDER_H

#include <openssl/types.h>
#include <stdint.h>

/* Call once, before any key. Fatal on failure. */
void tls_provider_init(void);

/*
 * Returns the private key that belongs to this public key, for
 * SSL_CTX_use_PrivateKey(). Every signature asks the key process for its key
 * `number`. The result is the caller's. NULL: this kind of key is not
 * supported.
 */
EVP_PKEY *tls_provider_key(EVP_PKEY *public_key, uint32_t number);

#endif
