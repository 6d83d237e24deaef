/* SPDX-License-Identifier: ISC */
/*
 * jwt: nothing unsigned is granted, and what is granted says so in claims that
 * hold. The input is a token; its two lines are also a header and claims,
 * which the target signs.
 */
#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base64.h"
#include "json.h"
#include "jwt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define NOW 1000000

static const uint8_t secret[] = "0123456789abcdef0123456789abcdef";
static const struct control_token_header named = { .alg = JWT_HS256 };
static const struct jwt_rules rules[] = {
	{ .secret = secret, .secret_len = 32, .skew_s = 30, .subject = "sub" },
	{ .secret = secret,
	    .secret_len = 32,
	    .issuer = "me",
	    .audience = "you",
	    .subject = "sub" },
};

/* base64url without padding, behind what is there. */
static void
append_part(struct buf *b, const void *bytes, size_t n)
{
	char *text = (char *)buf_reserve(b, base64_encoded_len(n) + 1);
	size_t len = base64_encode(text, bytes, n);

	for (size_t i = 0; i < len; i++)
		text[i] = (char)(text[i] == '+'	  ? '-'
				 : text[i] == '/' ? '_'
						  : text[i]);
	while (len > 0 && text[len - 1] == '=')
		len--;
	buf_commit(b, len);
}

static void
put_signed(struct buf *b, struct slice header, struct slice claims)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned n;

	append_part(b, header.ptr, header.len);
	buf_put_u8(b, '.');
	append_part(b, claims.ptr, claims.len);
	HMAC(EVP_sha256(), secret, 32, b->data, b->len, mac, &n);
	buf_put_u8(b, '.');
	append_part(b, mac, n);
	buf_put_u8(b, '\0');
}

/* It is granted, or it would be but for its time. */
static void
check_accepted(
    const struct jwt_rules *r, struct slice claims, const struct jwt_answer *a)
{
	const struct json_value *v;
	struct json_doc doc;
	int64_t n;

	assert(json_parse(&doc, claims.ptr, claims.len) == 0);
	assert(json_to_i64(json_get(doc.root, "exp"), &n) == 0);
	assert((n < NOW - (int64_t)r->skew_s) == a->only_expired);
	assert(n == (int64_t)a->token.until_s);
	if (r->issuer != NULL)
		assert(json_is(json_get(doc.root, "iss"), r->issuer));
	v = json_get(doc.root, "sub");
	assert(a->token.subject[0] == '\0' || json_is(v, a->token.subject));
	assert(a->token.there || !a->only_expired);
	json_clear(&doc);
}

static void
run(const struct jwt_rules *r, struct slice header, struct slice claims)
{
	struct jwt_answer answer;
	enum verdict v;
	struct buf b;

	buf_init(&b, 1 << 20);
	put_signed(&b, header, claims);
	assert(!b.failed);
	v = jwt_verify(r, (char *)b.data, &named, NOW, &answer);
	assert(!answer.only_expired || v == VERDICT_EXPIRED_JWT);
	if (v == VERDICT_GRANTED || answer.only_expired)
		check_accepted(r, claims, &answer);
	/* The last character but one is all signature: no spare bits. */
	b.data[b.len - 3] ^= 1;
	assert(jwt_verify(r, (char *)b.data, &named, NOW, &answer) ==
	       VERDICT_INVALID_JWT);
	buf_clear(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_free_ char *text = xstrndup((const char *)data, len);
	struct jwt_answer answer;
	const char *line = strchr(text, '\n');
	struct slice header = { text, line ? (size_t)(line - text) : 0 };

	assert(jwt_verify(&rules[0], text, &named, NOW, &answer) ==
	       VERDICT_INVALID_JWT);
	if (line == NULL)
		return 0;
	for (size_t i = 0; i < nitems(rules); i++)
		run(&rules[i], header,
		    (struct slice){ line + 1, strlen(line + 1) });
	return 0;
}
