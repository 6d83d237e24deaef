/* SPDX-License-Identifier: ISC */
/*
 * Asks the helpers, which do what the front-end must not do itself (enum
 * tls_helper). Each has a channel that came from the broker. The front-end
 * waits for an answer, but only for a short time.
 */
#pragma once

#include <openssl/types.h>
#include <stdint.h>

#include "control.h"

/* Call once, before any channel. `hangs` is called for a helper that does not
 * answer. */
void helper_init(void (*hangs)(enum tls_helper who));

/* Takes over new channels; -1 means none. Keys and contexts of the previous
 * epoch still use the previous channels, until helper_retire(). */
void helper_set_channels(const int fds[TLS_HELPERS]);

/* Asks each helper whether it answers. The broker is asked to replace one that
 * does not. */
void helper_ask_all(void);

/* Returns a line about a helper that is missing or has ended, or NULL. */
const char *helper_reason(void);

/* Closes the previous channels. */
void helper_retire(void);

/* Returns the number of the newest channels, which counts up. */
uint32_t helper_epoch(void);

/*
 * Asks the helper of that epoch and waits for its answer. Both structs begin
 * with a u32 serial, which is set here. Returns 0, or -errno after logging it:
 * -ETIMEDOUT, -EPIPE (there is no helper), -EBADMSG.
 */
int helper_ask(enum tls_helper who, uint32_t of_epoch, enum control_type ask,
    void *request, enum control_type type, void *answer);

/*
 * An OpenSSL provider (provider(7)) for keys that the key process holds. Such a
 * private key consists of a number and the public key.
 */

/* Call once, before any key. Fatal on failure. */
void tls_provider_init(void);

/*
 * Returns the private key that belongs to this public key, for
 * SSL_CTX_use_PrivateKey(). Every signature asks the key process for its key
 * `number`. The result is the caller's. NULL: this kind of key is not
 * supported.
 */
EVP_PKEY *tls_provider_key(EVP_PKEY *public_key, uint32_t number);
