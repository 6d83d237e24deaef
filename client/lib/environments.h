/* SPDX-License-Identifier: ISC */
/*
 * The file of environments, for those who change it.
 */
#ifndef ENVIRONMENTS_H
#define ENVIRONMENTS_H

/* Owned; NULL: neither EXECD_ENVIRONMENTS nor a home. */
char *environments_path(void);

#endif
