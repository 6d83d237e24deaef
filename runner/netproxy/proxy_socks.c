/* SPDX-License-Identifier: ISC */
#include "proxy_socks.h"

#include <arpa/inet.h>

#define COMMAND_CONNECT 1
#define COMMAND_UDP	3
#define ADDRESS_IPV4	1
#define ADDRESS_NAME	3
#define ADDRESS_IPV6	4

ssize_t
socks_greeting_parse(const char *data, size_t len, bool *accepted)
{
	size_t methods = len > 1 ? (uint8_t)data[1] : 0;

	if (len > 0 && data[0] != SOCKS_VERSION)
		return -EBADMSG;
	if (len < 2 || len < 2 + methods)
		return 0;
	*accepted = memchr(data + 2, 0, methods) != NULL;
	return (ssize_t)(2 + methods);
}

/* Returns the length of the address with its length byte; 0: unknown kind. */
static size_t
address_length(const char *data)
{
	switch (data[3]) {
	case ADDRESS_IPV4:
		return 4;
	case ADDRESS_IPV6:
		return 16;
	case ADDRESS_NAME:
		return 1 + (size_t)(uint8_t)data[4];
	default:
		return 0;
	}
}

static void
copy_address(struct socks_request *r, const char *data, size_t len)
{
	switch (data[3]) {
	case ADDRESS_IPV4:
		inet_ntop(AF_INET, data + 4, r->host, sizeof(r->host));
		break;
	case ADDRESS_IPV6:
		inet_ntop(AF_INET6, data + 4, r->host, sizeof(r->host));
		break;
	default:
		if (memchr(data + 5, '\0', len - 1) == NULL)
			memcpy(r->host, data + 5, len - 1);
	}
}

ssize_t
socks_request_parse(struct socks_request *r, const char *data, size_t len)
{
	const uint8_t *port;
	size_t n;

	*r = (struct socks_request){ 0 };
	if (len > 0 && data[0] != SOCKS_VERSION)
		return -EBADMSG;
	if (len < 5)
		return 0;
	r->connect = data[1] == COMMAND_CONNECT;
	r->udp = data[1] == COMMAND_UDP;
	n = address_length(data);
	if (n == 0)
		return (ssize_t)len;
	if (len < 4 + n + 2)
		return 0;
	copy_address(r, data, n);
	port = (const uint8_t *)data + 4 + n;
	r->port = (uint16_t)(port[0] << 8 | port[1]);
	return (ssize_t)(4 + n + 2);
}

void
socks_reply_write(uint8_t reply[SOCKS_REPLY_BYTES], enum socks_reply code)
{
	memset(reply, 0, SOCKS_REPLY_BYTES);
	reply[0] = SOCKS_VERSION;
	reply[1] = (uint8_t)code;
	reply[3] = ADDRESS_IPV4;
}
