/* SPDX-License-Identifier: ISC */
/*
 * Length-prefixed frames: u32 little-endian, then that many bytes of JSON,
 * never empty (doc/design.md section 3, doc/protocol.md section 18). No sockets
 * here.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_BYTES 4

/* From the front-end: the message goes on in the next frame, because its
 * length is not known yet. Pieces may be empty, the whole may not. */
#define FRAME_MORE 0x80000000u

/* A message from here on, or one of unknown length, goes in pieces. */
#define FRAME_PIECES_FROM_BYTES (1u << 20)

/* From a runner to its file helper, where all messages are whole, the same bit:
 * the first byte of the frame brought a descriptor, whose bytes stand for the
 * empty string that is params.dataBase64. */
#define FRAME_SPOOLED FRAME_MORE

/*
 * From a helper to its runner a second u32 follows the length, the tag: which
 * request this frame answers, counted from 1 in the order they were handed
 * on; 0 for a notification. FRAME_STREAM with a number says that notifications
 * of a stream follow that answer, alone that one stream is at its end;
 * FRAME_FAILED that the answer is an error.
 */
#define FRAME_TAGGED_BYTES 8
#define FRAME_STREAM	   0x80000000u
#define FRAME_FAILED	   0x40000000u
#define FRAME_NUMBER	   (FRAME_FAILED - 1)

/* Numbers go round below the flags, without 0. */
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

#endif
