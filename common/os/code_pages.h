/* SPDX-License-Identifier: ISC */
/*
 * Pages of programs and libraries. A library like libcrypto is run through
 * once, to start, and most of it never again.
 */
#ifndef CODE_PAGES_H
#define CODE_PAGES_H

/* Maps none of those that nobody can write any more: what runs on comes back
 * from the page cache, the rest is not held (madvise(2), MADV_DONTNEED). */
void code_pages_give_back(void);

#endif
