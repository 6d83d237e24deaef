/* SPDX-License-Identifier: ISC */
/*
 * The header of a signed token, read for the broker: it parses no JSON of
 * anybody whom it has not authenticated. What is read here only says which key
 * the broker tries; once the signature is good, it reads the header itself.
 */
#ifndef TOKEN_HEADER_H
#define TOKEN_HEADER_H

#include "control.h"
#include "util.h"

/* Leaves a member empty that is missing, is no text, or does not fit. */
void token_header_read(struct slice token, struct control_token_header *header);

#endif
