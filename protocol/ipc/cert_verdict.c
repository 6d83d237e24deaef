/* SPDX-License-Identifier: ISC */
/*
 * Seals verdicts on certificates.
 */
#include "cert_verdict.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

/* The fields are encoded as in a message, so that different verdicts never give
 * the same bytes. */
static void
make_seal(const struct control_cert_verdict *v, const uint8_t *secret,
    uint8_t seal[CONTROL_SECRET_BYTES])
{
	struct buf b;
	unsigned len = CONTROL_SECRET_BYTES;

	buf_init(&b, 128 + sizeof(v->subject));
	buf_puts(&b, "execd client certificate");
	buf_put_u32(&b, v->listener);
	buf_put_u64(&b, v->made_ms);
	buf_put(&b, v->digest, sizeof(v->digest));
	buf_put_string(
	    &b, v->subject, strnlen(v->subject, sizeof(v->subject) - 1));
	if (HMAC(EVP_sha256(), secret, CONTROL_SECRET_BYTES, b.data, b.len,
		seal, &len) == NULL)
		abort(); /* happens only without memory */
	buf_clear(&b);
}

void
cert_verdict_seal(
    struct control_cert_verdict *v, const uint8_t secret[CONTROL_SECRET_BYTES])
{
	make_seal(v, secret, v->seal);
}

bool
cert_verdict_is_sealed(const struct control_cert_verdict *v,
    const uint8_t secret[CONTROL_SECRET_BYTES])
{
	uint8_t seal[CONTROL_SECRET_BYTES];

	make_seal(v, secret, seal);
	return CRYPTO_memcmp(seal, v->seal, sizeof(seal)) == 0;
}
