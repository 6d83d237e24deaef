/* SPDX-License-Identifier: ISC */
/* The file system as the session's user sees it, for the resolver. */
#ifndef DISK_VIEW_H
#define DISK_VIEW_H

#include "resolve.h"

extern const struct fs_view disk_view;

#endif
