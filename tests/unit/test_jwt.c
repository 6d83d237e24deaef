/* SPDX-License-Identifier: ISC */
/*
 * jwt: tokens good and bad, by rows (doc/protocol.md section 1.5).
 */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base64.h"
#include "jwt.h"

#define NOW    1000000
#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

static const uint8_t secret[] = "0123456789abcdef0123456789abcdef";

static void
append_part(char *token, const void *bytes, size_t len)
{
	char *at = token + strlen(token);
	size_t n = base64_encode(at, bytes, len);

	while (n > 0 && at[n - 1] == '=')
		n--;
	at[n] = '\0';
	for (char *c = at; *c != '\0'; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
}

static void
make_token(char token[1024], const char *header, const char *claims)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned len;

	token[0] = '\0';
	append_part(token, header, strlen(header));
	strcat(token, ".");
	append_part(token, claims, strlen(claims));
	HMAC(EVP_sha256(), secret, 32, (unsigned char *)token, strlen(token),
	    mac, &len);
	strcat(token, ".");
	append_part(token, mac, len);
}

static const struct jwt_rules plain = {
	.secret = secret, .secret_len = 32, .skew_s = 30
};
static const struct jwt_rules strict = { .secret = secret,
	.secret_len = 32,
	.skew_s = 0,
	.issuer = "me",
	.audience = "you" };

static const struct row {
	const struct jwt_rules *rules;
	const char *header, *claims;
	enum verdict verdict;
} rows[] = {
	{ &plain, HEADER, "{\"exp\":1000000}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":999970}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":999969}", VERDICT_EXPIRED_JWT },
	{ &plain, HEADER, "{\"exp\":-1}", VERDICT_EXPIRED_JWT },
	{ &plain, HEADER, "{\"exp\":9223372036854775807}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":9223372036854775808}",
	    VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":null}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":\"1000000\"}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1e6}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "[]", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"exp\":1}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":1000030}",
	    VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":1000031}",
	    VERDICT_EARLY_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":null}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":\"1\"}",
	    VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"iss\":7}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"aud\":{}}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"aud\":[1]}",
	    VERDICT_INVALID_JWT },
	{ &plain, HEADER,
	    "{\"exp\":1000000,\"iss\":\"x\",\"aud\":[],\"sub\":1,\"iat\":{}}",
	    VERDICT_GRANTED },
	{ &plain, "{\"alg\":\"HS256\",\"crit\":[\"x\"]}", "{\"exp\":1000000}",
	    VERDICT_GRANTED },
	{ &plain, "{\"alg\":\"none\"}", "{\"exp\":1000000}",
	    VERDICT_INVALID_JWT },
	{ &plain, "{\"alg\":\"HS384\"}", "{\"exp\":1000000}",
	    VERDICT_INVALID_JWT },
	{ &plain, "{\"alg\":256}", "{\"exp\":1000000}", VERDICT_INVALID_JWT },
	{ &plain, "{}", "{\"exp\":1000000}", VERDICT_INVALID_JWT },
	{ &plain, "x", "{\"exp\":1000000}", VERDICT_INVALID_JWT },
	{ &strict, HEADER, "{\"exp\":999999}", VERDICT_EXPIRED_JWT },
	{ &strict, HEADER, "{\"exp\":1000000,\"iss\":\"me\",\"aud\":\"you\"}",
	    VERDICT_GRANTED },
	{ &strict, HEADER,
	    "{\"exp\":1000000,\"iss\":\"me\",\"aud\":[\"a\",\"you\"]}",
	    VERDICT_GRANTED },
	{ &strict, HEADER, "{\"exp\":1000000,\"aud\":\"you\"}",
	    VERDICT_ISSUER },
	{ &strict, HEADER, "{\"exp\":1000000,\"iss\":\"Me\",\"aud\":\"you\"}",
	    VERDICT_ISSUER },
	{ &strict, HEADER, "{\"exp\":1000000,\"iss\":\"me\"}",
	    VERDICT_AUDIENCE },
	{ &strict, HEADER, "{\"exp\":1000000,\"iss\":\"me\",\"aud\":[]}",
	    VERDICT_AUDIENCE },
};

static char subject[JWT_SUBJECT_MAX];

static void
test_rows(void **state)
{
	char token[1024];

	for (size_t i = 0; i < nitems(rows); i++) {
		enum verdict v;

		make_token(token, rows[i].header, rows[i].claims);
		v = jwt_verify(rows[i].rules, token, NOW, subject);
		if (v != rows[i].verdict)
			fail_msg("row %zu, %s: %d", i, rows[i].claims, (int)v);
	}
}

/* Every bit of a good token counts, and so does every cut. */
static void
test_signature(void **state)
{
	char good[1024], token[1024];

	make_token(good, HEADER, "{\"exp\":1000000}");
	for (size_t i = 0; i < strlen(good); i++) {
		for (int bit = 0; bit < 7; bit++) {
			strcpy(token, good);
			token[i] ^= (char)(1 << bit);
			assert_int_equal(
			    jwt_verify(&plain, token, NOW, subject),
			    VERDICT_INVALID_JWT);
		}
		strcpy(token, good);
		token[i] = '\0';
		assert_int_equal(jwt_verify(&plain, token, NOW, subject),
		    VERDICT_INVALID_JWT);
	}
	strcpy(token, good);
	strcat(token, "=");
	assert_int_equal(
	    jwt_verify(&plain, token, NOW, subject), VERDICT_INVALID_JWT);
	strcpy(token, good);
	strcat(token, ".x");
	assert_int_equal(
	    jwt_verify(&plain, token, NOW, subject), VERDICT_INVALID_JWT);
}

static void
test_no_token(void **state)
{
	static const char *const tokens[] = { "", ".", "..", "...", "abc",
		"a.b", "a.b.c", "e30.e30.", "é.é.é" };

	for (size_t i = 0; i < nitems(tokens); i++)
		assert_int_equal(jwt_verify(&plain, tokens[i], NOW, subject),
		    VERDICT_INVALID_JWT);
}

/* Whose a token is: a name that an identity can have, or nobody's. */
static void
test_subject(void **state)
{
	static const struct {
		const char *claims, *subject;
	} cases[] = {
		{ "{\"exp\":1000000}", "" },
		{ "{\"exp\":1000000,\"sub\":\"alice\"}", "alice" },
		{ "{\"exp\":1000000,\"sub\":null}", "" },
		{ "{\"exp\":1000000,\"sub\":7}", "" },
		{ "{\"exp\":1000000,\"sub\":\"a\\u0000b\"}", "" },
		{ "{\"exp\":1000000,\"sub\":\"\\u0061b\"}", "ab" },
	};
	char token[1024];

	for (size_t i = 0; i < nitems(cases); i++) {
		make_token(token, HEADER, cases[i].claims);
		memset(subject, 'x', sizeof(subject));
		assert_int_equal(
		    jwt_verify(&plain, token, NOW, subject), VERDICT_GRANTED);
		assert_string_equal(subject, cases[i].subject);
	}
}

/* One byte more than a subject may have. */
static void
test_long_subject(void **state)
{
	char claims[400], name[JWT_SUBJECT_MAX + 1], token[1024];

	for (size_t n = JWT_SUBJECT_MAX - 1; n <= JWT_SUBJECT_MAX; n++) {
		memset(name, 'a', n);
		name[n] = '\0';
		snprintf(claims, sizeof(claims),
		    "{\"exp\":1000000,\"sub\":\"%s\"}", name);
		make_token(token, HEADER, claims);
		assert_int_equal(
		    jwt_verify(&plain, token, NOW, subject), VERDICT_GRANTED);
		assert_int_equal(strlen(subject), n < JWT_SUBJECT_MAX ? n : 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subject),
		cmocka_unit_test(test_long_subject),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_signature),
		cmocka_unit_test(test_no_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
