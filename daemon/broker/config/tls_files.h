/* SPDX-License-Identifier: ISC */
/*
 * The files of a TLS listener: checks that they belong together, and makes
 * copies for the programs that need them. The broker itself does no TLS.
 */
#ifndef TLS_FILES_H
#define TLS_FILES_H

struct listener;

/* Reads and checks the certificate, the key and the client CA. Returns 0, or
 * -EINVAL with why[CONF_WHY_MAX]. */
int tls_files_load(struct listener *l, char *why);

#endif
