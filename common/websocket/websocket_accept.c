/* SPDX-License-Identifier: ISC */
/*
 * RFC 6455: the handshake key. It is in a file of its own because some programs
 * that parse frames do not link libcrypto.
 */
#include <openssl/evp.h>

#include "websocket.h"

static const char handshake_guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

void
websocket_accept(
    const char *key, size_t len, char accept[WEBSOCKET_ACCEPT_LEN + 1])
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned int n = 0;

	/* Without SHA-1 the result stays empty, which every client refuses. */
	accept[0] = '\0';
	if (ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha1(), NULL) == 1 &&
	    EVP_DigestUpdate(ctx, key, len) == 1 &&
	    EVP_DigestUpdate(ctx, handshake_guid, sizeof(handshake_guid) - 1) ==
		1 &&
	    EVP_DigestFinal_ex(ctx, digest, &n) == 1)
		EVP_EncodeBlock((unsigned char *)accept, digest, (int)n);
	EVP_MD_CTX_free(ctx);
}
