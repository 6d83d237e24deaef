/* SPDX-License-Identifier: ISC */
/*
 * Asks the key process for signatures.
 */
#include "tls_key.h"

#include <errno.h>
#include <string.h>

#include "log.h"
#include "tls_helper.h"

int
tls_key_sign(const struct tls_key *key, uint32_t scheme, const void *tbs,
    size_t len, uint8_t signature[CONTROL_SIGNATURE_MAX])
{
	struct control_sign request = { .key = key->number, .scheme = scheme };
	struct control_signed answer;
	int err;

	if (len > sizeof(request.tbs))
		return -EMSGSIZE;
	memcpy(request.tbs, tbs, len);
	request.len = (uint32_t)len;
	err = helper_ask(TLS_HELPER_KEYS, key->epoch, KEYS_SIGN, &request,
	    KEYS_SIGNED, &answer);
	if (err < 0)
		return err;
	if (answer.len > sizeof(answer.signature))
		return -EBADMSG;
	if (answer.len == 0) {
		log_error(0,
		    "key process: it made no signature with key %u and scheme "
		    "0x%04x; its own line says why",
		    key->number, scheme);
		return -EPERM;
	}
	memcpy(signature, answer.signature, answer.len);
	return (int)answer.len;
}
