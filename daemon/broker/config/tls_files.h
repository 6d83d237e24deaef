/* SPDX-License-Identifier: ISC */
/*
 * The files of a TLS listener: do they belong together, and copies of them
 * for the programs that need them. The broker makes no TLS itself.
 */
#ifndef TLS_FILES_H
#define TLS_FILES_H

struct listener;

/* Reads and checks certificate, key and client CA. 0, or -EINVAL with
 * why[CONF_WHY_MAX]. */
int tls_files_load(struct listener *l, char *why);

#endif
