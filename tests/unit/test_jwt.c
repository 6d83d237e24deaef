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

#include "jwt.h"
#include "token_text.h"

#define NOW    1000000
#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

static const uint8_t secret[] = "0123456789abcdef0123456789abcdef";

static void
make_token(char *token, const char *header, const char *claims)
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
	.secret = secret, .secret_len = 32, .skew_s = 30, .subject = "sub"
};
static const struct jwt_rules strict = { .secret = secret,
	.secret_len = 32,
	.skew_s = 0,
	.subject = "sub",
	.issuer = "me",
	.audience = "you" };

static const struct row {
	const struct jwt_rules *rules;
	const char *header, *claims;
	enum verdict verdict;
	const char *why; /* NULL: whatever */
} rows[] = {
	{ &plain, HEADER, "{\"exp\":1000000}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":999970}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":999969}", VERDICT_EXPIRED_JWT },
	{ &plain, HEADER, "{\"exp\":-1}", VERDICT_EXPIRED_JWT },
	{ &plain, HEADER, "{\"exp\":9223372036854775807}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":9223372036854775808}",
	    VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{}", VERDICT_INVALID_JWT,
	    "exp is missing or not an integer" },
	{ &plain, HEADER, "{\"exp\":null}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":\"1000000\"}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1e6}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "[]", VERDICT_INVALID_JWT,
	    "its claims are not a JSON object" },
	{ &plain, HEADER, "", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"exp\":1}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":1000030}",
	    VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":1000031}",
	    VERDICT_EARLY_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":null}", VERDICT_GRANTED },
	{ &plain, HEADER, "{\"exp\":1000000,\"nbf\":\"1\"}",
	    VERDICT_INVALID_JWT, "nbf is not an integer" },
	{ &plain, HEADER, "{\"exp\":1000000,\"iss\":7}", VERDICT_INVALID_JWT,
	    "iss or aud is not a text" },
	{ &plain, HEADER, "{\"exp\":1000000,\"aud\":{}}", VERDICT_INVALID_JWT },
	{ &plain, HEADER, "{\"exp\":1000000,\"aud\":[1]}",
	    VERDICT_INVALID_JWT },
	{ &plain, HEADER,
	    "{\"exp\":1000000,\"iss\":\"x\",\"aud\":[],\"sub\":1,\"iat\":{}}",
	    VERDICT_GRANTED },
	{ &plain, "{\"alg\":\"HS256\",\"crit\":[\"x\"]}", "{\"exp\":1000000}",
	    VERDICT_GRANTED },
	{ &plain, "{\"alg\":\"none\"}", "{\"exp\":1000000}",
	    VERDICT_INVALID_JWT, "alg `none`: it is not signed" },
	{ &plain, "{\"alg\":\"HS384\"}", "{\"exp\":1000000}",
	    VERDICT_INVALID_JWT, "alg `HS384` is not known" },
	{ &plain, "{\"alg\":\"RS256\",\"kid\":\"a\"}", "{\"exp\":1000000}",
	    VERDICT_INVALID_JWT, "alg `RS256` needs jwks-file" },
	{ &plain, "{\"alg\":256}", "{\"exp\":1000000}", VERDICT_INVALID_JWT },
	{ &plain, "{}", "{\"exp\":1000000}", VERDICT_INVALID_JWT,
	    "its header has no alg" },
	{ &plain, "x", "{\"exp\":1000000}", VERDICT_INVALID_JWT,
	    "its header has no alg" },
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

static struct jwt_answer answer;

static void
test_rows(void **state)
{
	char token[1024];

	for (size_t i = 0; i < nitems(rows); i++) {
		enum verdict v;

		make_token(token, rows[i].header, rows[i].claims);
		v = verify_token(rows[i].rules, token, NOW, &answer);
		if (v != rows[i].verdict)
			fail_msg("row %zu, %s: %d", i, rows[i].claims, (int)v);
		if (rows[i].why != NULL)
			assert_string_equal(answer.why, rows[i].why);
		else if (v == VERDICT_INVALID_JWT)
			assert_string_not_equal(answer.why, "");
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
			    verify_token(&plain, token, NOW, &answer),
			    VERDICT_INVALID_JWT);
		}
		strcpy(token, good);
		token[i] = '\0';
		assert_int_equal(verify_token(&plain, token, NOW, &answer),
		    VERDICT_INVALID_JWT);
	}
	strcpy(token, good);
	strcat(token, "=");
	assert_int_equal(
	    verify_token(&plain, token, NOW, &answer), VERDICT_INVALID_JWT);
	strcpy(token, good);
	strcat(token, ".x");
	assert_int_equal(
	    verify_token(&plain, token, NOW, &answer), VERDICT_INVALID_JWT);
}

static void
test_no_token(void **state)
{
	static const char *const tokens[] = { "", ".", "..", "...", "abc",
		"a.b", "a.b.c", "e30.e30.", "é.é.é" };

	for (size_t i = 0; i < nitems(tokens); i++)
		assert_int_equal(verify_token(&plain, tokens[i], NOW, &answer),
		    VERDICT_INVALID_JWT);
}

/* What the front-end says of a header is no more than a hint. */
static void
test_misread_header(void **state)
{
	static const struct control_token_header named = { .alg = JWT_HS256 };
	static const char *const headers[] = { "{}", "[]", "x", "",
		"{\"alg\":\"none\"}", "{\"alg\":\"RS256\"}",
		"{\"alg\":\"HS256\\u0000\"}" };
	char token[1024];

	for (size_t i = 0; i < nitems(headers); i++) {
		make_token(token, headers[i], "{\"exp\":1000000}");
		assert_int_equal(
		    jwt_verify(&plain, token, &named, NOW, &answer),
		    VERDICT_INVALID_JWT);
		assert_string_equal(
		    answer.why, headers[i][0] == '{' || headers[i][0] == '['
				    ? "the front-end misread its header"
				    : "its header is not JSON");
	}
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
		memset(&answer, 'x', sizeof(answer));
		assert_int_equal(
		    verify_token(&plain, token, NOW, &answer), VERDICT_GRANTED);
		assert_string_equal(answer.token.subject, cases[i].subject);
	}
}

static void
test_subject_claim(void **state)
{
	struct jwt_rules r = plain;
	char token[1024];

	r.subject = "repository";
	make_token(token, HEADER,
	    "{\"exp\":1000000,\"sub\":\"a\",\"repository\":\"o/r\"}");
	assert_int_equal(
	    verify_token(&r, token, NOW, &answer), VERDICT_GRANTED);
	assert_string_equal(answer.token.subject, "o/r");
}

/* One byte more than a subject may have. */
static void
test_long_subject(void **state)
{
	char claims[CONTROL_STRING_MAX + 64], name[CONTROL_STRING_MAX + 1];
	char token[2048];

	for (size_t n = CONTROL_STRING_MAX - 1; n <= CONTROL_STRING_MAX; n++) {
		memset(name, 'a', n);
		name[n] = '\0';
		snprintf(claims, sizeof(claims),
		    "{\"exp\":1000000,\"sub\":\"%s\"}", name);
		make_token(token, HEADER, claims);
		assert_int_equal(
		    verify_token(&plain, token, NOW, &answer), VERDICT_GRANTED);
		assert_int_equal(strlen(answer.token.subject),
		    n < CONTROL_STRING_MAX ? n : 0);
	}
}

/* Nothing else may be wrong, and it has to say whose it is. */
static void
test_only_expired(void **state)
{
	static const struct {
		const struct jwt_rules *rules;
		const char *claims;
		bool only;
	} cases[] = {
		{ &plain, "{\"exp\":999969}", true },
		{ &plain, "{\"exp\":-9223372036854775808,\"sub\":\"a\"}",
		    true },
		{ &plain, "{\"exp\":999970}", false },
		{ &plain, "{\"exp\":999969,\"sub\":null,\"iss\":null}", true },
		{ &plain, "{\"exp\":999969,\"nbf\":1000030}", true },
		{ &plain, "{\"exp\":999969,\"nbf\":1000031}", false },
		{ &plain, "{\"exp\":999969,\"nbf\":\"1\"}", false },
		{ &plain, "{\"exp\":999969,\"sub\":1}", false },
		{ &plain, "{\"exp\":999969,\"sub\":\"a\\u0000b\"}", false },
		{ &plain, "{\"exp\":999969,\"iss\":7}", false },
		{ &plain, "{\"exp\":999969,\"aud\":7}", false },
		{ &strict, "{\"exp\":1}", false },
		{ &strict, "{\"exp\":1,\"iss\":\"me\",\"aud\":\"you\"}", true },
		{ &strict, "{\"exp\":1,\"iss\":\"Me\",\"aud\":\"you\"}",
		    false },
		{ &strict, "{\"exp\":1,\"iss\":\"me\",\"aud\":\"others\"}",
		    false },
	};
	char token[1024];

	for (size_t i = 0; i < nitems(cases); i++) {
		make_token(token, HEADER, cases[i].claims);
		verify_token(cases[i].rules, token, NOW, &answer);
		if (answer.only_expired != cases[i].only)
			fail_msg("case %zu, %s", i, cases[i].claims);
		assert_true(answer.why[0] == '\0' || !answer.only_expired);
		/* Of a token that is not signed nothing is known. */
		token[strlen(token) - 2] ^= 1;
		verify_token(cases[i].rules, token, NOW, &answer);
		assert_false(answer.only_expired || answer.token.there);
	}
}

/* The issuer and the key that a session's token had. */
static void
test_is_ours(void **state)
{
	struct control_token mine, theirs;
	struct jwt_rules changed = strict;
	char token[1024];

	make_token(
	    token, HEADER, "{\"exp\":1000000,\"iss\":\"me\",\"aud\":\"you\"}");
	verify_token(&strict, token, NOW, &answer);
	mine = answer.token;
	assert_int_equal(mine.until_s, 1000000);
	assert_int_equal(mine.since_s, NOW);
	make_token(token, HEADER, "{\"exp\":1000000,\"aud\":\"you\"}");
	verify_token(&plain, token, NOW, &answer);
	theirs = answer.token;
	assert_true(jwt_is_ours(&strict, &mine));
	assert_true(jwt_is_ours(&plain, &mine));
	assert_true(jwt_is_ours(&plain, &theirs));
	assert_false(jwt_is_ours(&strict, &theirs));
	assert_memory_equal(mine.key, theirs.key, sizeof(mine.key));
	assert_memory_not_equal(mine.issuer, theirs.issuer, 32);
	changed.secret = (const uint8_t *)"another secret of thirty-two byt";
	assert_false(jwt_is_ours(&changed, &mine));
	changed.secret = NULL;
	assert_false(jwt_is_ours(&changed, &mine));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subject),
		cmocka_unit_test(test_subject_claim),
		cmocka_unit_test(test_long_subject),
		cmocka_unit_test(test_only_expired),
		cmocka_unit_test(test_is_ours),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_signature),
		cmocka_unit_test(test_no_token),
		cmocka_unit_test(test_misread_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
