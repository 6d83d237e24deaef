/* SPDX-License-Identifier: ISC */
/*
 * The HTTP upgrade of a WebSocket client. The program that answers is not
 * trusted.
 */
#include "upgrade.h"

#include <sys/random.h>

#include "base64.h"
#include "http_text.h"

#define KEY_BYTES 16

int
upgrade_request(struct buf *out, const struct endpoint *e, const char *token,
    const char *cookie, char accept[WEBSOCKET_ACCEPT_LEN + 1])
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
	if (cookie != NULL) {
		buf_puts(out, "\r\nCookie: ");
		buf_puts(out, cookie);
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

/* Visits the headers `name` until a visit returns true. Returns whether one
 * did. */
static bool
find_header(const char *text, size_t len, const char *name,
    bool (*visit)(void *arg, struct slice value), void *arg)
{
	const struct slice wanted = { name, strlen(name) };
	const char *line = text, *end = text + len, *next;
	struct slice key, value;

	for (; (next = memmem(line, (size_t)(end - line), "\r\n", 2)) != NULL;
	     line = next + 2) {
		value = (struct slice){ line, (size_t)(next - line) };
		if (http_split(&value, ':', &key) &&
		    http_same_word(key, wanted) && visit(arg, http_trim(value)))
			return true;
	}
	return false;
}

static bool
is_expected(void *arg, struct slice value)
{
	const char *accept = arg;

	return slice_equal(value, (struct slice){ accept, strlen(accept) });
}

static bool
is_any(void *arg, struct slice value)
{
	return true;
}

bool
upgrade_has_header(const char *text, size_t len, const char *name)
{
	return find_header(text, len, name, is_any, NULL);
}

static bool
is_cookie_octet(unsigned char c)
{
	return c > ' ' && c < 0x7f && strchr("\",;\\", c) == NULL;
}

/* A quoted value keeps its quotes, as RFC 6265 says. */
static bool
is_pair(struct slice value)
{
	struct slice name;

	if (!http_split(&value, '=', &name) || !http_is_token(name))
		return false;
	if (value.len >= 2 && value.ptr[0] == '"' &&
	    value.ptr[value.len - 1] == '"')
		value = (struct slice){ value.ptr + 1, value.len - 2 };
	for (size_t i = 0; i < value.len; i++)
		if (!is_cookie_octet((unsigned char)value.ptr[i]))
			return false;
	return true;
}

static bool
take_pair(void *arg, struct slice value)
{
	struct slice pair;
	char *cookie = arg;

	http_split(&value, ';', &pair);
	pair = http_trim(pair);
	if (pair.len >= UPGRADE_COOKIE_MAX || !is_pair(pair))
		return false;
	memcpy(cookie, pair.ptr, pair.len);
	cookie[pair.len] = '\0';
	return true;
}

bool
upgrade_cookie(const char *text, size_t len, char cookie[UPGRADE_COOKIE_MAX])
{
	return find_header(text, len, "Set-Cookie", take_pair, cookie);
}

void
upgrade_keep_cookie(char cookie[UPGRADE_COOKIE_MAX], const char *pair)
{
	cookie[0] = '\0';
	take_pair(cookie, (struct slice){ pair, strlen(pair) });
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
	    !find_header(text, (size_t)(end - text) + 2, "Sec-WebSocket-Accept",
		is_expected, (void *)(uintptr_t)accept))
		return -EPROTO;
	return end - text + 4;
}
