/* SPDX-License-Identifier: ISC */
/*
 * execd-netproxy: heads of both sides, SOCKS5, and the runner's messages. What
 * is written for the other side is read again as one message that ends its
 * connection, whatever bytes it was made from.
 */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "netproxy_message.h"
#include "proxy_dns.h"
#include "proxy_http.h"
#include "proxy_list.h"
#include "proxy_socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool
has_one_end(const struct buf *b)
{
	const char *text = (const char *)b->data;

	return memmem(text, b->len, "\r\n\r\n", 4) == text + b->len - 4;
}

static void
read_request(const struct host_name *tunnel, const char *data, size_t len)
{
	struct proxy_request r;
	const char *why = NULL;
	struct buf b;
	ssize_t n = proxy_request_parse(&r, tunnel, data, len, &why);

	assert(n != -EBADMSG || why != NULL);
	if (n <= 0)
		return;
	assert((size_t)n <= len && r.port != 0);
	assert(tunnel != NULL
		   ? !r.connect && r.path.ptr[0] == '/'
		   : r.host.ptr >= data && r.host.ptr + r.host.len <= data + n);
	buf_init(&b, 4 * PROXY_HEAD_MAX);
	if (!r.connect) {
		proxy_request_write(&b, &r);
		assert(!b.failed && has_one_end(&b));
	}
	buf_clear(&b);
}

static void
read_response(const char *data, size_t len)
{
	struct proxy_response r;
	struct buf b;
	ssize_t n;

	buf_init(&b, 4 * PROXY_HEAD_MAX);
	n = proxy_response_convert(&b, &r, data, len);
	assert(n <= 0 ? b.len == 0 : has_one_end(&b) && (size_t)n <= len);
	buf_clear(&b);
}

static void
read_socks(const char *data, size_t len)
{
	struct socks_request r;
	bool accepted;
	ssize_t n = socks_greeting_parse(data, len, &accepted);

	assert(n <= (ssize_t)len);
	n = socks_request_parse(&r, data, len);
	assert(n <= (ssize_t)len);
	assert(memchr(r.host, '\0', sizeof(r.host)) != NULL);
}

static void
read_query(const char *data, size_t len)
{
	uint8_t answer[DNS_ANSWER_MAX];
	struct dns_query q, again;
	size_t n;
	int code = dns_query_read(&q, data, len);

	assert(memchr(q.name, '\0', sizeof(q.name)) != NULL);
	if (code < 0)
		return;
	n = dns_answer_write(
	    answer, &q, (enum dns_code)code, code == DNS_OK ? 0xc6120102 : 0);
	assert(n <= sizeof(answer));
	/* It is no query, so two resolvers cannot answer each other. */
	assert(dns_query_read(&again, answer, n) == -EBADMSG);
}

static void
read_message(const char *data, size_t len)
{
	union netproxy_message m;
	struct proxy_list l = { 0 };
	struct buf b;
	int type = netproxy_get(data, len, &m);

	if (type < 0)
		return;
	buf_init(&b, NETPROXY_MESSAGE_MAX);
	netproxy_put(&b, (enum netproxy_type)type, &m);
	assert(b.len == len && memcmp(b.data, data, len) == 0);
	buf_clear(&b);
	if (type != NETPROXY_OPEN)
		return;
	proxy_list_read(&l, m.open.rules);
	network_rules_clear(&l.client);
	network_rules_clear(&l.ceiling);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct host_name tunnel = { .text = "a.example" };
	_cleanup_free_ char *copy = xmalloc(len ? len : 1);

	memcpy(copy, data, len);
	read_request(NULL, copy, len);
	read_request(&tunnel, copy, len);
	read_response(copy, len);
	read_socks(copy, len);
	read_query(copy, len);
	read_message(copy, len);
	return 0;
}
