/* SPDX-License-Identifier: ISC */
/*
 * RFC 6455: the frame parser and frame headers. It runs in the front-end and in
 * runners on bytes of clients, and in clients on bytes of a server. It trusts
 * neither.
 *
 * A frame is a header and a payload. The header is collected byte by byte and
 * refused at the first byte that cannot be valid. The way the input is split
 * therefore changes neither the result nor where an error is found.
 */
#include "websocket.h"
#include "utf8.h"

#define HEADER_FIN    0x80
#define HEADER_RSV    0x70
#define HEADER_OPCODE 0x0f
#define HEADER_MASKED 0x80
#define HEADER_LENGTH 0x7f
#define LENGTH_16     126 /* a length of 16 bits follows */
#define LENGTH_64     127

#define CLOSE_CODE_NONE 1005 /* "no status received"; never sent */

/* 32 bytes per step. The compiler uses the vectors that the machine has. */
typedef uint64_t wide __attribute__((vector_size(32)));

static bool
is_control(uint8_t opcode)
{
	return opcode >= WEBSOCKET_CLOSE;
}

static void
refuse(struct websocket_parser *p, struct websocket_item *item, uint16_t code,
    const char *error)
{
	p->failed = true;
	p->close_code = code;
	p->error = error;
	*item = (struct websocket_item){
		.event = WEBSOCKET_EV_ERROR, .close_code = code, .error = error
	};
}

void
websocket_parser_init(struct websocket_parser *p, uint64_t message_max)
{
	*p = (struct websocket_parser){ .message_max = message_max };
}

void
websocket_parser_init_client(struct websocket_parser *p, uint64_t message_max)
{
	websocket_parser_init(p, message_max);
	p->from_server = true;
}

/* Checks the first byte of a frame against the state of the message. Returns
 * NULL if it is valid, or else an error text. */
static const char *
first_byte_error(const struct websocket_parser *p)
{
	if (p->header[0] & HEADER_RSV)
		return "a reserved bit is set";
	if (p->opcode > WEBSOCKET_PONG ||
	    (p->opcode > WEBSOCKET_BINARY && !is_control(p->opcode)))
		return "reserved opcode";
	if (is_control(p->opcode))
		return p->fin ? NULL : "fragmented control frame";
	if (p->opcode == WEBSOCKET_CONTINUATION && p->message_opcode == 0)
		return "continuation of no message";
	if (p->opcode != WEBSOCKET_CONTINUATION && p->message_opcode != 0)
		return "new message inside a fragmented one";
	return NULL;
}

static const char *
second_byte_error(const struct websocket_parser *p)
{
	if (p->from_server && (p->header[1] & HEADER_MASKED))
		return "frame of a server is masked";
	if (!p->from_server && !(p->header[1] & HEADER_MASKED))
		return "frame is not masked";
	if (is_control(p->opcode) &&
	    (p->header[1] & HEADER_LENGTH) > WEBSOCKET_CONTROL_MAX)
		return "control frame is too long";
	return NULL;
}

/* Returns the size of the extended length in bytes. The second header byte must
 * have been received. */
static size_t
length_bytes(const struct websocket_parser *p)
{
	uint8_t length = p->header[1] & HEADER_LENGTH;

	if (length < LENGTH_16)
		return 0;
	return length == LENGTH_16 ? 2 : 8;
}

static size_t
mask_bytes(const struct websocket_parser *p)
{
	return p->from_server ? 0 : sizeof(p->mask);
}

/* Returns 0 and *length, or -1 for an encoding that RFC 6455 section 5.2
 * forbids. */
static int
header_length(const struct websocket_parser *p, uint64_t *length)
{
	size_t n = length_bytes(p);

	*length = n == 0 ? p->header[1] & HEADER_LENGTH : 0;
	for (size_t i = 0; i < n; i++)
		*length = *length << 8 | p->header[2 + i];
	if (n == 2)
		return *length < LENGTH_16 ? -1 : 0;
	if (n == 8)
		return *length <= UINT16_MAX || *length >> 63 ? -1 : 0;
	return 0;
}

/* Adds a data frame to its message. Returns false if a limit is exceeded. */
static bool
message_add(struct websocket_parser *p)
{
	if (p->opcode != WEBSOCKET_CONTINUATION) {
		p->message_opcode = p->opcode;
		p->message_len = 0;
		p->fragmented = !p->fin;
		p->started = false;
	}
	if (p->frame_len > p->message_max - p->message_len)
		return false;
	p->message_len += p->frame_len;
	return true;
}

static void
begin_frame(struct websocket_parser *p, struct websocket_item *item)
{
	memcpy(
	    p->mask, p->header + p->header_len - mask_bytes(p), mask_bytes(p));
	if (header_length(p, &p->frame_len) < 0) {
		refuse(p, item, WEBSOCKET_CLOSE_PROTOCOL,
		    "frame length is badly encoded");
		return;
	}
	if (!is_control(p->opcode) && !message_add(p)) {
		refuse(p, item, WEBSOCKET_CLOSE_TOO_BIG,
		    "frame or message is too long");
		return;
	}
	p->frame_at = 0;
	p->header_len = 0;
	p->in_payload = true;
}

/* Checks the byte that was just added to the header, and begins the frame when
 * the header is complete. */
static void
check_header(struct websocket_parser *p, struct websocket_item *item)
{
	const char *error = NULL;

	if (p->header_len == 1) {
		p->fin = p->header[0] & HEADER_FIN;
		p->opcode = p->header[0] & HEADER_OPCODE;
		error = first_byte_error(p);
	} else if (p->header_len == 2) {
		error = second_byte_error(p);
	}
	if (error != NULL)
		refuse(p, item, WEBSOCKET_CLOSE_PROTOCOL, error);
	else if (p->header_len >= 2 &&
		 p->header_len == 2 + length_bytes(p) + mask_bytes(p))
		begin_frame(p, item);
}

static size_t
take_header(struct websocket_parser *p, const uint8_t *data, size_t len,
    struct websocket_item *item)
{
	size_t n = 0;

	while (n < len && !p->in_payload && !p->failed) {
		p->header[p->header_len++] = data[n++];
		check_header(p, item);
	}
	return n;
}

void
websocket_mask(uint8_t *data, size_t len, const uint8_t mask[4], uint64_t at)
{
	uint8_t key[sizeof(wide)];
	wide k, w;
	size_t i = 0;

	for (size_t j = 0; j < sizeof(key); j++)
		key[j] = mask[(at + j) % 4];
	memcpy(&k, key, sizeof(k));
	for (; len - i >= sizeof(w); i += sizeof(w)) {
		memcpy(&w, data + i, sizeof(w));
		w ^= k;
		memcpy(data + i, &w, sizeof(w));
	}
	for (; i < len; i++)
		data[i] ^= key[i % 4];
}

/* A server's payload is not masked. */
static void
unmask(const struct websocket_parser *p, uint8_t *data, size_t len)
{
	if (!p->from_server)
		websocket_mask(data, len, p->mask, p->frame_at);
}

static void
check_close(struct websocket_parser *p, struct websocket_item *item)
{
	uint16_t code = (uint16_t)(p->control[0] << 8 | p->control[1]);

	item->event = WEBSOCKET_EV_CLOSE;
	item->close_code = item->len == 0 ? CLOSE_CODE_NONE : code;
	p->closed = true;
	if (item->len == 0)
		return;
	if (item->len == 1)
		refuse(p, item, WEBSOCKET_CLOSE_PROTOCOL,
		    "close frame of one byte");
	else if (!websocket_close_code_valid(code))
		refuse(p, item, WEBSOCKET_CLOSE_PROTOCOL, "bad close code");
	else if (utf8_check(0, p->control + 2, item->len - 2) != 0)
		refuse(p, item, WEBSOCKET_CLOSE_BAD_DATA,
		    "close reason is not UTF-8");
}

static void
end_control(struct websocket_parser *p, struct websocket_item *item)
{
	p->in_payload = false;
	item->payload = p->control;
	item->len = (size_t)p->frame_len;
	if (p->opcode == WEBSOCKET_CLOSE)
		check_close(p, item);
	else if (p->opcode == WEBSOCKET_PING)
		item->event = WEBSOCKET_EV_PING;
	else
		item->event = WEBSOCKET_EV_PONG;
}

/* The payload of a control frame is copied until it is complete: it may come in
 * pieces, and earlier input is gone by then. */
static size_t
take_control(struct websocket_parser *p, const uint8_t *data, size_t n,
    struct websocket_item *item)
{
	uint8_t *to = p->control + p->frame_at;

	memcpy(to, data, n);
	unmask(p, to, n);
	p->frame_at += n;
	if (p->frame_at == p->frame_len)
		end_control(p, item);
	return n;
}

static bool
text_valid(struct websocket_parser *p, const uint8_t *data, size_t n, bool last)
{
	p->utf8_state = utf8_check(p->utf8_state, data, n);
	return p->utf8_state == 0 || (p->utf8_state != 1 && !last);
}

static size_t
take_data(struct websocket_parser *p, uint8_t *data, size_t n,
    struct websocket_item *item)
{
	bool last;

	unmask(p, data, n);
	p->frame_at += n;
	p->in_payload = p->frame_at < p->frame_len;
	last = p->fin && !p->in_payload;
	if (p->message_opcode == WEBSOCKET_TEXT &&
	    !text_valid(p, data, n, last)) {
		refuse(p, item, WEBSOCKET_CLOSE_BAD_DATA, "text is not UTF-8");
		return n;
	}
	if (n == 0 && p->started && !last)
		return 0; /* an empty fragment in the middle is ignored */
	*item = (struct websocket_item){ .event = WEBSOCKET_EV_DATA,
		.payload = data,
		.len = n,
		.first = !p->started,
		.last = last,
		.fragmented = p->fragmented,
		.binary = p->message_opcode == WEBSOCKET_BINARY };
	if (!p->started && !p->fragmented)
		item->message_len = p->frame_len;
	p->started = true;
	if (last)
		p->message_opcode = 0;
	return n;
}

static size_t
take_payload(struct websocket_parser *p, uint8_t *data, size_t len,
    struct websocket_item *item)
{
	uint64_t left = p->frame_len - p->frame_at;
	size_t n = left < len ? (size_t)left : len;

	if (n == 0 && left > 0)
		return 0;
	if (is_control(p->opcode))
		return take_control(p, data, n, item);
	return take_data(p, data, n, item);
}

size_t
websocket_parse(struct websocket_parser *p, uint8_t *data, size_t len,
    struct websocket_item *item)
{
	size_t used = 0;

	*item = (struct websocket_item){ .event = WEBSOCKET_EV_NEED_MORE };
	if (p->failed)
		refuse(p, item, p->close_code, p->error);
	if (p->failed || p->closed || len == 0)
		return len; /* input after a close frame is ignored */
	do {
		if (!p->in_payload)
			used += take_header(p, data + used, len - used, item);
		if (p->in_payload)
			used += take_payload(p, data + used, len - used, item);
	} while (item->event == WEBSOCKET_EV_NEED_MORE && used < len);
	return used;
}

size_t
websocket_put_header(uint8_t header[WEBSOCKET_HEADER_MAX],
    enum websocket_opcode opcode, uint64_t len)
{
	size_t n = 0;

	header[0] = (uint8_t)(HEADER_FIN | opcode);
	header[1] = (uint8_t)len;
	if (len > UINT16_MAX) {
		header[1] = LENGTH_64;
		n = 8;
	} else if (len >= LENGTH_16) {
		header[1] = LENGTH_16;
		n = 2;
	}
	for (size_t i = 0; i < n; i++)
		header[2 + i] = (uint8_t)(len >> (8 * (n - 1 - i)));
	return 2 + n;
}

size_t
websocket_put_fragment(uint8_t header[WEBSOCKET_HEADER_MAX], uint64_t len,
    uint64_t at, uint64_t *payload)
{
	enum websocket_opcode opcode =
	    at == 0 ? WEBSOCKET_TEXT : WEBSOCKET_CONTINUATION;
	size_t n;

	*payload = len - at;
	if (len > WEBSOCKET_WHOLE_MAX && *payload > WEBSOCKET_FRAGMENT_MAX)
		*payload = WEBSOCKET_FRAGMENT_MAX;
	n = websocket_put_header(header, opcode, *payload);
	if (at + *payload < len)
		header[0] &= (uint8_t)~HEADER_FIN;
	return n;
}

size_t
websocket_put_masked_header(uint8_t header[WEBSOCKET_MASKED_MAX],
    enum websocket_opcode opcode, uint64_t len, const uint8_t mask[4])
{
	size_t n = websocket_put_header(header, opcode, len);

	header[1] |= HEADER_MASKED;
	memcpy(header + n, mask, 4);
	return n + 4;
}

bool
websocket_close_code_valid(uint16_t code)
{
	if (code >= 3000)
		return code < 5000;
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}
