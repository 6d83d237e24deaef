/* SPDX-License-Identifier: ISC */
/*
 * RFC 6455: frame parser, frame headers, handshake key, for either side. A
 * state machine over bytes that somebody else reads and writes; it never
 * copies a payload and never allocates.
 */
#ifndef WEBSOCKET_H
#define WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
#define WEBSOCKET_HEADER_MAX  10	  /* server frames are not masked */
#define WEBSOCKET_MASKED_MAX  14	  /* the header of a client's frame */
#define WEBSOCKET_FRAME_MAX   (16u << 20) /* doc/protocol.md section 1.3 */
#define WEBSOCKET_MESSAGE_MAX (64u << 20)

enum websocket_event {
	WEBSOCKET_EV_NEED_MORE, /* all input is consumed */
	WEBSOCKET_EV_DATA,	/* a piece of a text or binary message */
	WEBSOCKET_EV_PING,	/* payload complete; answer with a pong */
	WEBSOCKET_EV_PONG,
	WEBSOCKET_EV_CLOSE, /* code and reason are in payload, maybe empty */
	WEBSOCKET_EV_ERROR, /* close with close_code; nothing more parses */
};

struct websocket_item {
	enum websocket_event event;
	uint8_t *payload; /* unmasked, inside the caller's input (data) or
			   * inside the parser (control frames) */
	size_t len;
	bool first;	      /* DATA: the message begins here */
	bool last;	      /* DATA: the message ends here */
	uint64_t message_len; /* DATA, first: total length if the message is one
			       * frame, else 0 and `fragmented` */
	bool fragmented;      /* DATA: more than one frame */
	bool binary;	      /* DATA: not text; its UTF-8 is not checked */
	uint16_t close_code; /* EV_ERROR: what to close with. EV_CLOSE: the code
			      * to echo (1005 if the frame was empty) */
	const char *error;   /* EV_ERROR: a sentence */
};

struct websocket_parser {
	uint64_t frame_max;   /* payload bytes of a frame */
	uint64_t message_max; /* of a message */
	bool from_server;     /* what it parses comes unmasked */
	/* private */
	uint8_t header[14];
	uint8_t header_len;
	uint8_t opcode;
	uint8_t message_opcode; /* 0: no message under way */
	bool fin;
	bool failed;
	bool in_payload; /* the header is complete */
	bool started;	 /* the message's first piece was handed out */
	bool fragmented;
	bool closed; /* a close frame came; what follows is dropped */
	uint8_t mask[4];
	uint64_t frame_len;
	uint64_t frame_at;
	uint64_t message_len;
	uint32_t utf8_state; /* 0 between messages */
	uint8_t control[WEBSOCKET_CONTROL_MAX];
	uint16_t close_code; /* the first error, repeated ever after */
	const char *error;
};

void websocket_parser_init(
    struct websocket_parser *p, uint64_t frame_max, uint64_t message_max);

/* The same for a client, which reads a server's frames. */
void websocket_parser_init_client(
    struct websocket_parser *p, uint64_t frame_max, uint64_t message_max);

/* Parses from data[0..len), unmasking in place, up to the end of one item.
 * Returns the bytes consumed; call again with the rest until NEED_MORE.
 * Zero-length messages give one DATA item with first and last. */
size_t websocket_parse(struct websocket_parser *p, uint8_t *data, size_t len,
    struct websocket_item *item);

/* Header of an unmasked, unfragmented server frame. Returns its length. */
size_t websocket_put_header(uint8_t header[WEBSOCKET_HEADER_MAX],
    enum websocket_opcode opcode, uint64_t len);

/* Header of a masked, unfragmented client frame. Returns its length; the
 * payload goes through websocket_mask() with the same mask, which nobody may
 * be able to guess (RFC 6455 section 10.3). */
size_t websocket_put_masked_header(uint8_t header[WEBSOCKET_MASKED_MAX],
    enum websocket_opcode opcode, uint64_t len, const uint8_t mask[4]);

/* XORs the mask over data, whose first byte is byte `at` of the frame. */
void websocket_mask(
    uint8_t *data, size_t len, const uint8_t mask[4], uint64_t at);

/* May a close frame carry this code on the wire? (RFC 6455 section 7.4) */
bool websocket_close_code_valid(uint16_t code);

/* Sec-WebSocket-Accept of a Sec-WebSocket-Key: base64(SHA1(key + GUID)). */
#define WEBSOCKET_ACCEPT_LEN 28
void websocket_accept(
    const char *key, size_t len, char accept[WEBSOCKET_ACCEPT_LEN + 1]);

#endif
