/* SPDX-License-Identifier: ISC */
/*
 * The PATH that the system gives a user who logs in. The files are root's, and
 * trusted.
 */
#pragma once

/*
 * Returns what login(1) and PAM set: PATH of etc/environment if pam_env(8)
 * reads that at a login, otherwise ENV_PATH of etc/login.defs (login.defs(5)).
 * NULL: the system names none. The caller frees it.
 */
char *login_path(const char *etc);
