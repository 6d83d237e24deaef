/* SPDX-License-Identifier: ISC */
/* Text between UTF-8, which execd's code has, and UTF-16, which Windows has. */
#pragma once

#include <windows.h>

/* Both return a copy that the caller frees, or NULL if the text is malformed.
 */
WCHAR *wide_of_utf8(const char *text);
char *utf8_of_wide(const WCHAR *text);
