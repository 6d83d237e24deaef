/* SPDX-License-Identifier: ISC */
/* The parent of a Windows runner; what it does is in host.h. */
#ifndef PARENT_WINDOWS_H
#define PARENT_WINDOWS_H

#include <windows.h>

/* The handles stay open until the program ends. Called once, at first. */
void parent_windows_at(HANDLE in, HANDLE out);

#endif
