/* SPDX-License-Identifier: ISC */
/*
 * Enters the user namespace of the session, and from there namespaces of the
 * sandbox's own (doc/design.md section 2), and limits what may be used up
 * there.
 */
#ifndef SANDBOX_MAIN_H
#define SANDBOX_MAIN_H

#include <stdbool.h>

#endif
