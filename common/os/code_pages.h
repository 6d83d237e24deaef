/* SPDX-License-Identifier: ISC */
/*
 * Memory pages of program code. A library like libcrypto is run once at the
 * start, and most of its pages are never used again.
 */
#pragma once

/* Unmaps all pages of segments that cannot be written. Pages that are still
 * used come back from the page cache; the others use no memory of this process
 * (madvise(2), MADV_DONTNEED). */
void code_pages_give_back(void);
