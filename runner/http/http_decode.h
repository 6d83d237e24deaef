/* SPDX-License-Identifier: ISC */
/*
 * Decodes a body that comes compressed (Content-Encoding, RFC 9110 section
 * 8.4), in steps of a bounded size, so that whoever takes the result decides
 * after each whether he wants more.
 */
#pragma once

#include "base.h"

/* The most that one step decodes, in bytes. */
#define HTTP_DECODE_STEP (128u << 10)

struct http_decoder;

/* Tells whether a body with this value of Content-Encoding is decoded. */
bool http_decoder_knows(const char *coding);

/*
 * Returns the decoder for a coding that is known, to be freed by
 * http_decoder_free(). NULL: there is no memory.
 */
struct http_decoder *http_decoder_new(const char *coding);
void http_decoder_free(struct http_decoder *d);

/*
 * Decodes from data[len] and takes what it used out of them. *out then points
 * to what came out, which is valid until the next step. Returns its length; 0
 * if all is used and more must come; or -EBADMSG if this is not the coding.
 */
ssize_t http_decoder_step(
    struct http_decoder *d, const char **data, size_t *len, const void **out);

/* Tells whether the body may end here: after a member, or before the first. */
bool http_decoder_may_end(const struct http_decoder *d);
