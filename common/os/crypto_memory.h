/* SPDX-License-Identifier: ISC */
/*
 * The memory of OpenSSL, which in places does not look whether it got any.
 */
#ifndef CRYPTO_MEMORY_H
#define CRYPTO_MEMORY_H

/* From now on the program ends without it, as everywhere else (util.h). To be
 * called before anything of OpenSSL. */
void crypto_memory_init(void);

/* The same for programs that handle keys: memory is overwritten before it is
 * given back. */
void crypto_memory_init_secret(void);

#endif
