/*
 * The key process's system calls.
 */
#ifndef POLICY_H
#define POLICY_H

/* 0 or -errno. */
int policy_load(void);

#endif
