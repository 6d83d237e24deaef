/* SPDX-License-Identifier: ISC */
/*
 * The HTTP upgrade of a WebSocket client. The program that answers is not
 * trusted.
 */
#include "upgrade.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base64.h"

#define KEY_BYTES 16

int
upgrade_request(struct buf *out, const struct endpoint *e, const char *token,
    char accept[WEBSOCKET_ACCEPT_LEN + 1])
{
	uint8_t random[KEY_BYTES];
	char key[64];
	size_t n;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	n = base64_encode(key, random, sizeof(random));
	websocket_accept(key, n, accept);
	if (accept[0] == '\0')
		return -EIO;
	buf_puts(out, "GET ");
	buf_puts(out, e->path);
	buf_puts(out, " HTTP/1.1\r\nHost: ");
	buf_puts(out, e->authority);
	buf_puts(out, "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ");
	buf_put(out, key, n);
	if (token != NULL) {
		buf_puts(out, "\r\nAuthorization: Bearer ");
		buf_puts(out, token);
	}
	buf_puts(out, "\r\n\r\n");
	return 0;
}

/* The first bytes of a TLS alert: record type 21, version 3 (RFC 8446 section
 * 5.1). A TLS server answers plain text with one. */
#define TLS_ALERT "\x15\x03"

/* Returns the status of a line like "HTTP/1.1 101 ...", or -1. */
static int
take_status(const char *line, size_t len)
{
	int status = 0;

	if (len < 12 || strncmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
		return -1;
	for (size_t i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return -1;
		status = status * 10 + line[i] - '0';
	}
	return status;
}

/* Tells whether the line is header `name` with this value. Blanks around the
 * value are ignored. */
static bool
header_is(const char *line, size_t len, const char *name, const char *value)
{
	size_t n = strlen(name);

	if (len <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
		return false;
	for (n++; n < len && (line[n] == ' ' || line[n] == '\t');)
		n++;
	while (len > n && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	return len - n == strlen(value) && !strncmp(line + n, value, len - n);
}

static bool
has_accept(const char *text, size_t len, const char *accept)
{
	const char *line = text, *end = text + len, *next;

	for (; (next = memmem(line, (size_t)(end - line), "\r\n", 2)) != NULL;
	     line = next + 2)
		if (header_is(line, (size_t)(next - line),
			"Sec-WebSocket-Accept", accept))
			return true;
	return false;
}

ssize_t
upgrade_answer(const char *text, size_t len, const char *accept, int *status,
    const char **why)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);

	/* Checks the first bytes at once: a peer that does not speak HTTP may
	 * send nothing more. */
	*why = "the server speaks TLS; its address begins with wss://";
	if (len > 1 && memcmp(text, TLS_ALERT, 2) == 0)
		return -EPROTO;
	*why = "the server does not speak HTTP";
	if (strncmp(text, "HTTP/1.", len < 7 ? len : 7) != 0)
		return -EPROTO;
	if (end == NULL)
		return 0;
	*status = take_status(text, len);
	if (*status < 0)
		return -EPROTO;
	*why = "the upgrade to WebSocket was answered with a wrong key";
	if (*status == 101 &&
	    !has_accept(text, (size_t)(end - text) + 2, accept))
		return -EPROTO;
	return end - text + 4;
}
