/* SPDX-License-Identifier: ISC */
/*
 * OpenSSL's door to the key process: a provider (provider(7)) whose private
 * keys are a number and a public key.
 */
#ifndef TLS_PROVIDER_H
#define TLS_PROVIDER_H

#include <openssl/types.h>
#include <stdint.h>

/* Once, before any key. Fatal on failure. */
void tls_provider_init(void);

/* The private key to this public one, for SSL_CTX_use_PrivateKey(); every
 * signature asks the key process for its key of that number. NULL: of a kind
 * that is not served. The caller's. */
EVP_PKEY *tls_provider_key(EVP_PKEY *public_key, uint32_t number);

#endif
