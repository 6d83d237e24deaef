/*
 * Length-prefixed frames: u32 little-endian, then that many bytes of JSON,
 * never empty (DESIGN.md section 3, PROTOCOL.md section 18). No sockets here.
 */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_BYTES 4

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
