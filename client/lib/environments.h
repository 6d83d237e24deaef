/* SPDX-License-Identifier: ISC */
/*
 * Where the file of environments is, for the code that changes it.
 */
#ifndef ENVIRONMENTS_H
#define ENVIRONMENTS_H

/* The caller frees the path. NULL: there is neither EXECD_ENVIRONMENTS nor an
 * absolute XDG_CONFIG_HOME or HOME. */
char *environments_path(void);

#endif
