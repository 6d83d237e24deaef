/*
 * Landlock (landlock(7)) without its headers: Debian 12's know ABI 2 only.
 */
#ifndef LANDLOCK_H
#define LANDLOCK_H

/* The newest ABI this kernel speaks: 1 and up, or 0 for none. */
int landlock_abi(void);

/* No file, no TCP port, no abstract socket and no foreign process from now
 * on, as far as this kernel's ABI knows them. Needs no_new_privs. 0 or
 * -errno (-ENOSYS: no Landlock). */
int landlock_deny_all(void);

#endif
