/* SPDX-License-Identifier: ISC */
/*
 * Memory for OpenSSL, which does not check every allocation for failure.
 */
#pragma once

/* From now on the program ends if OpenSSL gets no memory, as in util.h. Call
 * before any other function of OpenSSL. */
void crypto_memory_init(void);

/* The same for programs that handle keys: memory is also overwritten before it
 * is freed. */
void crypto_memory_init_secret(void);
