/* SPDX-License-Identifier: ISC */
/*
 * SIGHUP: the configuration anew.
 */
#ifndef RELOAD_H
#define RELOAD_H

struct conf;
struct broker;

/* All or nothing. Sessions go on as they are; what is new counts for new
 * ones, and for every connection that has no session yet. 0, or an enum
 * exit_code after logging why nothing has changed. */
int reload_configuration(struct broker *m);

/* Removes what listeners of `old` left in the file system, unless one of
 * `next` (or NULL) has the same place. */
void reload_unlink_listeners(const struct conf *old, const struct conf *next);

#endif
