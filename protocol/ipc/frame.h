/* SPDX-License-Identifier: ISC */
/*
 * Frames with a length: a u32, little-endian, then as many bytes of JSON, at
 * least one (doc/design.md section 3, doc/protocol.md section 18). This file
 * knows no sockets.
 */
#pragma once

#include "base.h"

#define FRAME_HEADER_BYTES 4

/* From the front-end: the message continues in the next frame, because its
 * length was not known. Single frames of it may be empty, but not all. */
#define FRAME_MORE 0x80000000u

/* Messages of this size or more, and those of unknown length, are sent in
 * pieces. */
#define FRAME_PIECES_FROM_BYTES (1u << 20)

/* From a runner to its file helper, which gets whole messages only, the same
 * bit means: a descriptor came with the first byte of the frame, and its
 * contents stand for params.dataBase64, which is empty in the message. */
#define FRAME_SPOOLED FRAME_MORE

/*
 * From a helper to its runner, a second u32 follows the length: the tag. Its
 * number says which request the frame answers, counted from 1 in the order in
 * which the requests were sent; 0 stands for a notification. FRAME_STREAM with
 * a number says that notifications of a stream follow this answer. FRAME_STREAM
 * alone says that one such stream has ended. FRAME_FAILED says that the answer
 * is an error. FRAME_DECIDED, which has no number, says that the frame is for
 * the runner itself: it is a NETPROXY_DECIDED of netproxy_message.h.
 */
#define FRAME_TAGGED_BYTES 8
#define FRAME_STREAM	   0x80000000u
#define FRAME_FAILED	   0x40000000u
#define FRAME_NUMBER	   (FRAME_FAILED - 1)
#define FRAME_DECIDED	   FRAME_FAILED

/* Returns the number after this one. Numbers stay below the flags, wrap around
 * and skip 0. */
static inline uint32_t
frame_next_number(uint32_t number)
{
	return number % FRAME_NUMBER + 1;
}

static inline uint32_t
frame_get_length(const uint8_t header[FRAME_HEADER_BYTES])
{
	return (uint32_t)header[0] | (uint32_t)header[1] << 8 |
	       (uint32_t)header[2] << 16 | (uint32_t)header[3] << 24;
}

static inline void
frame_put_length(uint8_t header[FRAME_HEADER_BYTES], uint32_t length)
{
	header[0] = (uint8_t)length;
	header[1] = (uint8_t)(length >> 8);
	header[2] = (uint8_t)(length >> 16);
	header[3] = (uint8_t)(length >> 24);
}
