/* SPDX-License-Identifier: ISC */
/*
 * RFC 6455: the frame parser, frame headers and the handshake key, for both
 * sides. The caller reads and writes the bytes. The parser never allocates, and
 * it copies the payload of control frames only.
 */
#pragma once

#include "base.h"

enum websocket_opcode {
	WEBSOCKET_CONTINUATION = 0x0,
	WEBSOCKET_TEXT = 0x1,
	WEBSOCKET_BINARY = 0x2,
	WEBSOCKET_CLOSE = 0x8,
	WEBSOCKET_PING = 0x9,
	WEBSOCKET_PONG = 0xa,
};

/* Close codes that execd sends (RFC 6455 section 7.4.1). */
enum websocket_close_code {
	WEBSOCKET_CLOSE_NORMAL = 1000,
	WEBSOCKET_CLOSE_GOING_AWAY = 1001,
	WEBSOCKET_CLOSE_PROTOCOL = 1002,
	WEBSOCKET_CLOSE_BAD_DATA = 1007, /* text that is not UTF-8 */
	WEBSOCKET_CLOSE_POLICY = 1008,
	WEBSOCKET_CLOSE_TOO_BIG = 1009,
	WEBSOCKET_CLOSE_INTERNAL = 1011,
};

#define WEBSOCKET_CONTROL_MAX 125
#define WEBSOCKET_HEADER_MAX  10 /* frames of a server are not masked */
#define WEBSOCKET_MASKED_MAX  14 /* the header of a client's frame */
/* Clients of Codex drop the connection at a frame of over 16 MiB. A message
 * that is longer than WHOLE_MAX goes in fragments of this size. */
#define WEBSOCKET_WHOLE_MAX    (15u << 20)
#define WEBSOCKET_FRAGMENT_MAX (4u << 20)
#define WEBSOCKET_MESSAGE_MAX  (64u << 20)

enum websocket_event {
	WEBSOCKET_EV_NEED_MORE, /* all input was used */
	WEBSOCKET_EV_DATA,	/* part of a text or binary message */
	WEBSOCKET_EV_PING,	/* payload is complete; answer with a pong */
	WEBSOCKET_EV_PONG,
	/* payload holds the code and the reason, or is empty */
	WEBSOCKET_EV_CLOSE,
	WEBSOCKET_EV_ERROR, /* close with close_code; nothing more is parsed */
};

struct websocket_item {
	enum websocket_event event;
	/* unmasked; in the caller's input (data) or in the parser (control
	 * frames) */
	uint8_t *payload;
	size_t len;
	bool first; /* DATA: the message begins here */
	bool last;  /* DATA: the message ends here */
	/* DATA with first: total length if the message is one frame; else 0,
	 * and `fragmented` is set */
	uint64_t message_len;
	bool fragmented; /* DATA: the message has more than one frame */
	bool binary;	 /* DATA: binary; UTF-8 is not checked */
	/* EV_ERROR: the code to close with. EV_CLOSE: the code to echo (1005 if
	 * the frame was empty) */
	uint16_t close_code;
	const char *error; /* EV_ERROR: a message */
};

struct websocket_parser {
	uint64_t message_max; /* most payload bytes of one message */
	bool from_server; /* parses frames of a server, which are not masked */
	/* private */
	uint8_t header[14];
	uint8_t header_len;
	uint8_t opcode;
	uint8_t message_opcode; /* 0: no message has begun */
	bool fin;
	bool failed;
	bool in_payload; /* the header is complete */
	bool started;	 /* the first piece of the message was returned */
	bool fragmented;
	bool closed; /* a close frame came; later input is ignored */
	uint8_t mask[4];
	uint64_t frame_len;
	uint64_t frame_at;
	uint64_t message_len;
	uint32_t utf8_state; /* 0 between messages */
	uint8_t control[WEBSOCKET_CONTROL_MAX];
	/* the first error, returned again by every later call */
	uint16_t close_code;
	const char *error;
};

void websocket_parser_init(struct websocket_parser *p, uint64_t message_max);

/* The same for a client, which parses frames of a server. */
void websocket_parser_init_client(
    struct websocket_parser *p, uint64_t message_max);

/*
 * Parses data[0..len) up to the end of one item and unmasks it in place.
 * Returns the number of bytes used. The caller calls again with the rest until
 * the event is NEED_MORE. An empty message gives one DATA item with first and
 * last.
 */
size_t websocket_parse(struct websocket_parser *p, uint8_t *data, size_t len,
    struct websocket_item *item);

/* Writes the header of an unmasked, unfragmented server frame. Returns its
 * length. */
size_t websocket_put_header(uint8_t header[WEBSOCKET_HEADER_MAX],
    enum websocket_opcode opcode, uint64_t len);

/*
 * Writes the header of the next frame of a text message of len bytes, of which
 * `at` are sent; *payload becomes the bytes that belong to it. A long message
 * has several frames. Returns the header's length.
 */
size_t websocket_put_fragment(uint8_t header[WEBSOCKET_HEADER_MAX],
    uint64_t len, uint64_t at, uint64_t *payload);

/* Writes the header of a masked, unfragmented client frame. Returns its length.
 * The caller masks the payload with websocket_mask() and the same mask, which
 * must be unpredictable (RFC 6455 section 10.3). */
size_t websocket_put_masked_header(uint8_t header[WEBSOCKET_MASKED_MAX],
    enum websocket_opcode opcode, uint64_t len, const uint8_t mask[4]);

/* XORs data with the mask. data[0] is byte `at` of the payload. */
void websocket_mask(
    uint8_t *data, size_t len, const uint8_t mask[4], uint64_t at);

/* Returns true if a close frame may carry this code (RFC 6455 section 7.4). */
bool websocket_close_code_valid(uint16_t code);

/* Computes Sec-WebSocket-Accept for a Sec-WebSocket-Key: base64(SHA1(key +
 * GUID)). The result is empty if SHA-1 is not available. */
#define WEBSOCKET_ACCEPT_LEN 28
void websocket_accept(
    const char *key, size_t len, char accept[WEBSOCKET_ACCEPT_LEN + 1]);
