/* SPDX-License-Identifier: ISC */
/* tls_hello: the name in a ClientHello that OpenSSL wrote, whole and in pieces.
 */
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tls_hello.h"

static uint8_t hello[TLS_HELLO_MAX];
static size_t hello_len;

/* What a client sends first; NULL: without a name. */
static void
write_hello(const char *name)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	SSL *ssl = SSL_new(ctx);
	int n;

	SSL_set_bio(ssl, in, out);
	if (name != NULL)
		assert_int_equal(SSL_set_tlsext_host_name(ssl, name), 1);
	SSL_connect(ssl);
	n = BIO_read(out, hello, sizeof(hello));
	assert_true(n > 0);
	hello_len = (size_t)n;
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

static void
the_name_is_found(void **state)
{
	struct slice name;

	write_hello("a.example");
	assert_int_equal(
	    tls_hello_read(hello, hello_len, &name), TLS_HELLO_NAME);
	assert_true(slice_equal(name, SLICE("a.example")));
	for (size_t n = 0; n < hello_len; n++)
		assert_int_equal(
		    tls_hello_read(hello, n, &name), TLS_HELLO_PARTIAL);
}

static void
no_name_is_told(void **state)
{
	struct slice name;

	write_hello(NULL);
	assert_int_equal(
	    tls_hello_read(hello, hello_len, &name), TLS_HELLO_NO_NAME);
}

static void
other_bytes_are_told_at_once(void **state)
{
	static const char *const others[] = { "GET / HTTP/1.1\r\n", "SSH-2.0-x",
		"\x16\x02\x01\x00\x05\x01", "\x17\x03\x03\x00\x05\x01",
		"\x16\x03\x01\x00\x05\x02", "\x16\x03\x01\xff\xff\x01" };
	struct slice name;

	for (size_t i = 0; i < nitems(others); i++)
		assert_int_equal(
		    tls_hello_read(others[i], 6, &name), TLS_HELLO_OTHER);
}

/* Lengths that lead out of the record. */
static void
broken_lengths_show_no_name(void **state)
{
	struct slice name;
	uint8_t copy[sizeof(hello)];

	write_hello("a.example");
	for (size_t i = 5; i < hello_len; i++) {
		memcpy(copy, hello, hello_len);
		copy[i] = 0xff;
		switch (tls_hello_read(copy, hello_len, &name)) {
		case TLS_HELLO_NAME:
			assert_true((const uint8_t *)name.ptr >= copy);
			assert_true((const uint8_t *)name.ptr + name.len <=
				    copy + hello_len);
			break;
		case TLS_HELLO_PARTIAL:
			fail();
			break;
		default:
			break;
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_is_found),
		cmocka_unit_test(no_name_is_told),
		cmocka_unit_test(other_bytes_are_told_at_once),
		cmocka_unit_test(broken_lengths_show_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
