/* SPDX-License-Identifier: ISC */
#include "wide_text.h"

#include "util.h"

WCHAR *
wide_of_utf8(const char *text)
{
	int n = MultiByteToWideChar(
	    CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, NULL, 0);
	WCHAR *wide;

	if (n <= 0)
		return NULL;
	wide = xcalloc((size_t)n, sizeof(*wide));
	MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n);
	return wide;
}

char *
utf8_of_wide(const WCHAR *text)
{
	int n = WideCharToMultiByte(
	    CP_UTF8, WC_ERR_INVALID_CHARS, text, -1, NULL, 0, NULL, NULL);
	char *utf8;

	if (n <= 0)
		return NULL;
	utf8 = xmalloc((size_t)n);
	WideCharToMultiByte(
	    CP_UTF8, WC_ERR_INVALID_CHARS, text, -1, utf8, n, NULL, NULL);
	return utf8;
}
